//! The page in a real browser: Chromium, driven by `chromedriver`. Where there
//! is no `chromedriver`, the test says so and passes.

use crate::support::{Bench, LONG};
use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A running `chromedriver`, ended with the test.
struct Driver {
    child: Child,
    port: u16,
    profile: tempfile::TempDir,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Asked to end, it closes its browsers; killed, it would leave them.
        if self.ask("GET", "/shutdown", "").is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

impl Driver {
    /// `None` if there is no `chromedriver` on this machine.
    fn start() -> Option<Driver> {
        let started = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match started {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            started => started.unwrap(),
        };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            line.split("successfully on port ")
                .nth(1)?
                .trim_end_matches('.')
                .parse()
                .ok()
        });
        // Whoever stops reading stops the driver.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Driver {
            child,
            port: port.expect("chromedriver says its port"),
            profile: tempfile::tempdir().unwrap(),
        })
    }

    /// The body of its answer to a request. It keeps connections open whatever
    /// a client asks for, so the length says where the answer ends.
    fn ask(&self, method: &str, target: &str, body: &str) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(LONG))?;
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        )?;
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap_or(0);
                }
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body)?;
        Ok(body)
    }

    async fn browser(&self) -> Client {
        let profile = self.profile.path().display();
        let mut capabilities = Capabilities::new();
        capabilities.insert(
            "goog:chromeOptions".to_owned(),
            json!({ "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", "--accept-lang=en", "--window-size=1280,1600",
                format!("--user-data-dir={profile}"),
            ] }),
        );
        capabilities.insert("goog:loggingPrefs".to_owned(), json!({ "browser": "ALL" }));
        ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{}", self.port))
            .await
            .expect("a browser starts")
    }
}

async fn text(browser: &Client, css: &str) -> String {
    browser
        .find(Locator::Css(css))
        .await
        .unwrap()
        .text()
        .await
        .unwrap()
}

/// Waits until a script, asked again and again, says true.
async fn until(browser: &Client, script: &str) {
    let asked = async {
        loop {
            let said = browser
                .execute(&format!("return Boolean({script})"), Vec::new())
                .await;
            // While a page is being replaced there is nobody to ask.
            if matches!(said, Ok(serde_json::Value::Bool(true))) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LONG, asked)
        .await
        .unwrap_or_else(|_| panic!("never true: {script}"));
}

async fn click(browser: &Client, css: &str) {
    browser
        .find(Locator::Css(css))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
}

const LIVE: &str = r##"document.querySelector("#connection").dataset.state === "live""##;

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_uses_the_page() {
    let Some(driver) = Driver::start() else {
        eprintln!(
            "skipped: there is no chromedriver; install it with `apt-get install chromium chromium-driver`"
        );
        return;
    };
    let mut bench = Bench::new(&[]);
    let browser = driver.browser().await;
    let page = format!("http://{}/", bench.address());

    // The page loads with readings, whole and without complaints.
    browser.goto(&page).await.unwrap();
    assert_eq!(text(&browser, "h1").await, "John F. Kennedy JFK");
    assert!(text(&browser, "#temperature").await.contains("17.0"));
    assert!(text(&browser, "#machine").await.contains("0.42"));
    assert!(
        !browser
            .find_all(Locator::Css("#chart svg.chart path.curve.temperature"))
            .await
            .unwrap()
            .is_empty()
    );
    until(&browser, LIVE).await;

    // The language switches, writing direction too, and survives a reload.
    browser
        .find(Locator::Css("select[name=language]"))
        .await
        .unwrap()
        .select_by_value("ar")
        .await
        .unwrap();
    until(
        &browser,
        r#"document.documentElement.lang === "ar" && document.documentElement.dir === "rtl""#,
    )
    .await;
    browser.refresh().await.unwrap();
    assert_eq!(text(&browser, ".brand span").await, "محطة الطقس");
    browser
        .find(Locator::Css("select[name=language]"))
        .await
        .unwrap()
        .select_by_value("de")
        .await
        .unwrap();
    until(&browser, r#"document.documentElement.lang === "de""#).await;
    browser.refresh().await.unwrap();
    assert_eq!(text(&browser, ".brand span").await, "Wetterstation");
    until(&browser, LIVE).await;

    // Tampering shows on the open page, is announced, and goes again.
    browser
        .execute("window.same = true", Vec::new())
        .await
        .unwrap();
    bench.tamper("1\n");
    until(&browser, r##"document.querySelector("#alarm[role=alert] strong")?.textContent === "Manipulation erkannt""##).await;
    bench.tamper("0\n");
    until(&browser, r##"!document.querySelector("#alarm strong")"##).await;

    // Station and speed change without a new page.
    click(&browser, "button[name=station][value=EWR]").await;
    until(
        &browser,
        r#"document.querySelector("h1").textContent.startsWith("Newark Liberty")"#,
    )
    .await;
    click(&browser, "button[name=speed][value='21600']").await;
    until(&browser, r#"document.querySelector("button[value='21600']").getAttribute("aria-pressed") === "true""#).await;
    until(
        &browser,
        r#"document.querySelector("time").dateTime >= "2013-05-09""#,
    )
    .await;
    click(&browser, "button[name=speed][value='0']").await;
    until(
        &browser,
        r#"document.querySelector("button[value='0']").getAttribute("aria-pressed") === "true""#,
    )
    .await;

    // A table that was opened stays open while news arrives, and so does focus.
    click(&browser, "#chart summary").await;
    browser
        .execute(
            r#"document.querySelector("button[name=station][value=LGA]").focus()"#,
            Vec::new(),
        )
        .await
        .unwrap();
    click(&browser, "button[name=station][value=LGA]").await;
    until(
        &browser,
        r#"document.querySelector("h1").textContent.startsWith("LaGuardia")"#,
    )
    .await;
    until(&browser, r##"document.querySelector("#chart details").open && document.activeElement.value === "LGA""##).await;
    until(&browser, "window.same").await;

    // A second window of the same visitor switches the language of the first.
    let first = browser.window().await.unwrap();
    let second = browser.new_window(true).await.unwrap();
    browser.switch_to_window(second.handle).await.unwrap();
    browser.goto(&page).await.unwrap();
    browser
        .find(Locator::Css("select[name=language]"))
        .await
        .unwrap()
        .select_by_value("es")
        .await
        .unwrap();
    until(&browser, r#"document.documentElement.lang === "es""#).await;
    browser.switch_to_window(first).await.unwrap();
    until(&browser, r#"document.documentElement.lang === "es""#).await;

    // The station starts again, on another port; the choice is the visitor's still.
    let before = bench.address().to_string();
    bench.restart();
    browser
        .goto(&format!("http://{}/", bench.address()))
        .await
        .unwrap();
    assert_eq!(
        text(&browser, ".brand span").await,
        "Estación meteorológica"
    );
    until(&browser, LIVE).await;

    // What the browser refused or a script threw would stand here.
    until(&browser, r#"performance.getEntriesByType("resource").every((e) => new URL(e.name).host === location.host)"#).await;
    let mut complaints = complaints(&driver, &browser).await;
    // The other window goes on asking where the station was.
    complaints.retain(|complaint| {
        !(complaint.contains(&before) && complaint.contains("ERR_CONNECTION_REFUSED"))
    });
    assert_eq!(complaints, Vec::<String>::new());
    browser.close().await.unwrap();
}

/// What the browser complains of in its log: refused resources, script errors.
async fn complaints(driver: &Driver, browser: &Client) -> Vec<String> {
    let session = browser.session_id().await.unwrap().expect("a session");
    let answer = driver
        .ask(
            "POST",
            &format!("/session/{session}/se/log"),
            r#"{"type":"browser"}"#,
        )
        .unwrap();
    let answer: serde_json::Value =
        serde_json::from_slice(&answer).expect("the driver answers in JSON");
    let entries = answer["value"].as_array().expect("a log").iter();
    entries
        .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}
