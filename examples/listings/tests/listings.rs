//! The program as it is run: a line for each listing.

use std::process::Command;

#[test]
fn the_program_prints_a_line_for_each_listing() {
    let output = Command::new(env!("CARGO_BIN_EXE_listings"))
        .output()
        .expect("the program runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "\
II     printWatchdogStatus: Watchdog is enabled
II     enableWatchdogInSecurityContext: /watchdog/%/enable=false /watchdog/A/enable=true
II     class Security: /watchdog/A/enable
III-A  enableWatchdog: /watchdog/A/enable
III-A  deactivate beside activate: /device/A/locked
III-A  activate beside syncLayers: battery_low is yes
III-C  assignment: /value is 6
III-C  a new value is up to date: value is 5
III-D  calculateTask: 100 steps, and 10 when the battery is low
III-E  class Thread: the second of three threads is verbose
III-E  a pool of threads: /pool/background/1 5, /pool/background/2 5, /http 100
III-F  startupcode: 0 private keys left
III-F  Shutdown: the blocked thread has ended, its timeout was 0
III-G  policies: six of them, of one size
III-G  main: version is true, by option -V
IV-A   an HTTP session: session 4711 reads Hallo, a visitor Hello
IV-A   kdb.set under requireLock: session 4711 still reads german
IV-A   tampering: tamper!!!
IV-A   hardware profiles: the tamper input is ~/context/pi/tamper.txt
IV-B   the loop that tampers: tampering has come and gone ten times
IV-B   the loop that locks: requests were served under each of 3 locks
"
    );
}
