// Streams over HTTP and MQTT, from C++. With a port and a client id as arguments it is the program
// that a broker is tested with; without, that of HTTP.

#include "streams_check.hpp"

#include <milieu/foreign.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;
using milieu::Event;

static Event next(milieu::Subscription &subscription) { return next(subscription.wait_for(20s)); }

static const std::string token = "0123456789abcdef";
static const std::string bearer = "Authorization: Bearer " + token + "\r\n";

// The whole answer to a request; nothing where nobody listens.
static std::string answer(const milieu::Component &server, const std::string &line,
    const std::string &head, const std::string &body = "") {
    const std::string_view id = server.id();
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(std::string(id.substr(17)))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int peer = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT(connect(peer, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0);
    const std::string request = line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + head
        + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    ASSERT(write(peer, request.data(), request.size()) == static_cast<ssize_t>(request.size()));
    std::string got;
    char buffer[4096];
    for (ssize_t more; (more = read(peer, buffer, sizeof buffer)) > 0;)
        got.append(buffer, static_cast<std::size_t>(more));
    close(peer);
    return got;
}

static void streams_are_served() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto heat = streams.retaining_publisher<double>("/weather/heat");
    heat.publish(21.5);
    ASSERT(has(thrown(MILIEU_INVALID, [&] { (void)milieu::serve_http(streams, {}); }), "`accesses`"));
    milieu::HttpOptions options;
    options.accesses = {{token, {{"/weather/*"}, {"/guests/*", "/others/*"}}}, {"fedcba9876543210"}};
    options.accesses[1].measures = true;
    options.address = "0.0.0.0:0";
    ASSERT(has(thrown(MILIEU_INVALID, [&] { (void)milieu::serve_http(streams, options); }),
        "`for_others`"));
    options.for_others = true;
    ASSERT(has(milieu::serve_http(streams, options).id(), "http://0.0.0.0:"));
    options.address = {};
    options.hosts = {"station.example"};
    options.bounds.body_bytes = 64;
    auto server = milieu::serve_http(streams, options);
    ASSERT(server.status() == MILIEU_WORKING && server.failure().empty());
    ASSERT(has(answer(server, "GET /latest?flow=/weather/heat", bearer), "\"value\":21.5"));
    ASSERT(has(answer(server, "GET /latest?flow=/weather/heat", ""), " 401 "));
    const std::string other = "Authorization: Bearer fedcba9876543210\r\n";
    ASSERT(has(answer(server, "GET /latest?flow=/weather/heat", other), " 403 "));
    ASSERT(has(answer(server, "GET /metrics", other), "component_sent_events_total"));
    auto door = streams.subscribe("/others/door");
    const std::string json = bearer + "Content-Type: application/json\r\n";
    ASSERT(has(answer(server, "POST /events?name=/others/door", json, "{\"open\":true}"), " 200 "));
    ASSERT(next(door).field("open").boolean() == true);
    ASSERT(has(answer(server, "POST /events?name=/others/door", json, std::string(65, '1')),
        " 413 "));
    ASSERT(server.received() == 1 && server.sent() == 1 && server.discarded("overflow") == 0);
    ASSERT(server.errors("token") == 1 && server.errors("right") == 1);
    thrown(MILIEU_INVALID, [&] { server.withdraw(); });
    ASSERT(has(answer(server, "GET /ping", ""), " 200 "));
}

static void pages_and_components_of_the_program() {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    milieu::HttpOptions options;
    options.accesses = {{token}};
    options.pages = {{"/", "text/html", "<p>Hello"}, {"/ping", "text/plain", ""}};
    ASSERT(has(thrown(MILIEU_INVALID, [&] { (void)milieu::serve_http(streams, options); }),
        "the page `/ping`: the server answers there itself"));
    const std::string made(100000, 'a');
    options.pages[1] = {"/made", "text/plain; charset=utf-8", made};
    auto server = milieu::serve_http(streams, options);
    options.pages.clear();
    ASSERT(has(answer(server, "GET /", ""), "\r\n\r\n<p>Hello"));
    const std::string page = answer(server, "GET /made", "");
    ASSERT(has(page, "content-type: text/plain; charset=utf-8\r\n"));
    ASSERT(page.size() > made.size() && has(page, "\r\n\r\n" + made));

    ASSERT(has(answer(server, "GET /ready", ""), " 200 "));
    {
        milieu::Component display(streams, "display", "spi");
        ASSERT(display.id() == "display" && display.status() == MILIEU_STARTING);
        ASSERT(has(answer(server, "GET /ready", ""), " 503 "));
        display.tell(MILIEU_FAILING, "it is dark");
        ASSERT(display.failure() == "it is dark");
        ASSERT(has(answer(server, "GET /ready", bearer), "display: failing: it is dark\n"));
        display.tell(MILIEU_WORKING);
        ASSERT(has(answer(server, "GET /ready", ""), " 200 "));
        ASSERT(has(thrown(MILIEU_INVALID, [&] { display.tell(MILIEU_FAILING); }), "`why` is empty"));
        thrown(MILIEU_INVALID, [&] { server.tell(MILIEU_WORKING); });
        thrown(MILIEU_INVALID, [&] { display.withdraw(); });
        thrown(MILIEU_INVALID, [&] { (void)milieu::Component(streams, "", "spi"); });
        auto moved = std::move(display);
        moved.tell(MILIEU_STARTING);
        ASSERT(has(answer(server, "GET /ready", ""), " 503 "));
    }
    ASSERT(has(answer(server, "GET /ready", ""), " 200 "));
}

static void a_broker_is_spoken_to(std::uint16_t port, const std::string &client) {
    milieu::Coordinator coordinator;
    milieu::Streams streams(coordinator);
    auto heat = streams.retaining_publisher<double>("/weather/heat");
    milieu::MqttOptions options{"127.0.0.1", client, port};
    options.inputs = {{"weather/+", "/home"}, {"homeassistant/device/+/config", "/seen", "json"}};
    options.outputs = {{"/weather/heat | filter value > 20", "weather/heat", true},
        {"/weather/heat", "weather/whole"}};
    options.outputs[1].whole_events = true;
    options.outputs[1].delivery.capacity = 16;
    milieu::MqttEntity entity{"heat", "sensor", "Heat", "weather/heat",
        {{"unit_of_measurement", "°C"}, {"expire_after", 60}, {"force_update", true}}};
    options.devices = {{client, "A station", {entity}, {{"mf", "Milieu"}}}};
    auto home = streams.subscribe("/home/weather/heat");
    auto whole = streams.subscribe("/home/weather/whole");
    auto seen = streams.subscribe("/seen/**");
    auto connection = milieu::connect_mqtt(streams, options);
    ASSERT(eventually([&] { return connection.status() == MILIEU_WORKING; }));
    heat.publish(18);
    heat.publish(21.5);
    ASSERT(next(home).field("value").number() == 21.5);
    ASSERT(has(next(whole).json(), "\"name\":\"/weather/heat\""));
    const std::string device = next(seen).json();
    ASSERT(has(device, "\"unit_of_measurement\":\"°C\"") && has(device, "\"expire_after\":60"));
    ASSERT(has(device, "\"force_update\":true") && has(device, "\"mf\":\"Milieu\""));
    ASSERT(eventually([&] { return connection.sent() == 3 && connection.received() >= 4; }));

    // A server knows the connection.
    milieu::HttpOptions http;
    http.accesses = {{token}};
    auto server = milieu::serve_http(streams, http);
    ASSERT(has(answer(server, "GET /ready", ""), " 200 "));
    options.client_id = "another";
    options.port = 1;
    options.devices.clear();
    {
        auto failing = milieu::connect_mqtt(streams, options);
        ASSERT(eventually([&] { return failing.status() == MILIEU_FAILING; }));
        ASSERT(has(failing.failure(), "is the broker running there?"));
        ASSERT(failing.errors("connection") > 0 && failing.id() == "mqtt://127.0.0.1:1");
        ASSERT(has(answer(server, "GET /ready", bearer), "mqtt://127.0.0.1:1"));
    }
    options.inputs[0].qos = 3;
    thrown(MILIEU_INVALID, [&] { (void)milieu::connect_mqtt(streams, options); });
    connection.withdraw();
}

int main(int argc, char **argv) {
    ASSERT(argc == 1 || argc == 3);
    if (argc == 1) {
        streams_are_served();
        pages_and_components_of_the_program();
    } else a_broker_is_spoken_to(static_cast<std::uint16_t>(std::stoi(argv[1])), argv[2]);
    std::puts("ok");
}
