/*
 * Streams for programs that are not this one, in C++: over HTTP, and from an MQTT broker and to it;
 * over foreign.h, which says what holds of them.
 *
 *   milieu::HttpAccess access{std::getenv("TOKEN")};
 *   access.rights.read = {"/weather/temperature"};
 *   milieu::HttpOptions http;
 *   http.accesses = {access};
 *   auto server = milieu::serve_http(streams, http);
 *   std::cout << server.id() << '\n';
 *
 *   milieu::MqttOptions mqtt{"broker.example", "station-1"};
 *   mqtt.inputs = {{"zigbee2mqtt/+", "/home"}};
 *   auto connection = milieu::connect_mqtt(streams, mqtt);
 */
#ifndef MILIEU_FOREIGN_HPP
#define MILIEU_FOREIGN_HPP

#include <milieu/foreign.h>
#include <milieu/rights.hpp>

namespace milieu {

/* ---------------------------------------------------------------- components */

/** A server, a connection, or what the program says of something else, until it goes. */
class [[nodiscard]] Component {
public:
    explicit Component(milieu_component *component) noexcept : component_(component) {}
    /**
     * Something that the program has besides, and without which it is not ready: a display, a
     * device. `/ready` and `/metrics` tell of it by its id and a word for what it is.
     */
    Component(const Streams &streams, std::string_view id, std::string_view kind) {
        milieu_component *component;
        detail::check(milieu_component_new(
            streams.c(), detail::text(id), detail::text(kind), &component));
        component_.reset(component);
    }

    /** Says how it is, and why where it is failing; servers and connections say so themselves. */
    void tell(milieu_status status, std::string_view why = {}) const {
        detail::check(milieu_component_tell(component_.get(), status, detail::text(why)));
    }
    /** What it is called: its id, or its address, `http://127.0.0.1:8080`. Valid until this goes. */
    std::string_view id() const {
        milieu_text id;
        detail::check(milieu_component_id(component_.get(), &id));
        return detail::view(id);
    }
    /** How it is. */
    milieu_status status() const {
        std::uint32_t status;
        detail::check(milieu_component_status(component_.get(), &status, nullptr));
        return static_cast<milieu_status>(status);
    }
    /** Why it is not connected, where it is failing. */
    std::string failure() const {
        std::uint32_t status;
        milieu_text why;
        detail::check(milieu_component_status(component_.get(), &status, &why));
        return std::string(detail::view(why));
    }
    /** How many events came in. */
    std::uint64_t received() const { return events().first; }
    /** How many events went out. */
    std::uint64_t sent() const { return events().second; }
    /** How many events were discarded for a reason, such as `overflow`. */
    std::uint64_t discarded(std::string_view why) const {
        std::uint64_t count;
        detail::check(milieu_component_discarded(component_.get(), detail::text(why), &count));
        return count;
    }
    /** How many errors there were for a reason, such as `token`. */
    std::uint64_t errors(std::string_view why) const {
        std::uint64_t count;
        detail::check(milieu_component_errors(component_.get(), detail::text(why), &count));
        return count;
    }
    /** Ends a connection to a broker, and takes its devices back, so that Home Assistant forgets them. */
    void withdraw() {
        detail::check(milieu_mqtt_withdraw(component_.get()));
        component_.release();
    }
    /** The component of the C interface. */
    milieu_component *c() const noexcept { return component_.get(); }

private:
    std::pair<std::uint64_t, std::uint64_t> events() const {
        std::pair<std::uint64_t, std::uint64_t> events;
        detail::check(milieu_component_events(component_.get(), &events.first, &events.second));
        return events;
    }

    std::unique_ptr<milieu_component, detail::Freeing<milieu_component, milieu_component_free>>
        component_;
};

/* ---------------------------------------------------------------- HTTP */

/** What whoever shows a token may do. */
struct HttpAccess {
    /** 16 to 512 letters, digits, `-`, `.`, `_` and `~`, from a source of randomness. */
    std::string_view token;
    /** Names whose events may be read, and so on. */
    Rights rights = {};
    /** Whether `/metrics` may be seen. */
    bool measures = false;
};

/** Something for browsers, which is shown to everybody, without a token too. */
struct HttpPage {
    /** Where it is, as requests write it: `/`, `/page.html`. */
    std::string_view path;
    /** What it is: `text/html; charset=utf-8`. */
    std::string_view media_type;
    /** What it says: any bytes. */
    std::string_view content;
};

/** How streams are served. */
struct HttpOptions {
    /** Who may do what: at least one. */
    std::vector<HttpAccess> accesses = {};
    /** `127.0.0.1:8080`; empty is a free port of 127.0.0.1. */
    std::string_view address = {};
    /** Whether others than this machine may reach it. */
    bool for_others = false;
    /** Names by which clients call this host, beside addresses and `localhost`. */
    std::vector<std::string_view> hosts = {};
    /** Origins of pages that are let in, beside those that come from here. */
    std::vector<std::string_view> origins = {};
    /** What is shown to everybody. */
    std::vector<HttpPage> pages = {};
    /** Its numbers are the bounds; all else of it is said above. */
    milieu_http_options bounds = MILIEU_HTTP_OPTIONS;
};

/** Serves streams over HTTP until what is returned goes. */
inline Component serve_http(const Streams &streams, const HttpOptions &options) {
    std::vector<detail::RightsOfC> rights;
    for (const HttpAccess &access : options.accesses) rights.emplace_back(access.rights);
    std::vector<milieu_http_access> accesses;
    for (std::size_t i = 0; i < rights.size(); ++i) {
        const HttpAccess &access = options.accesses[i];
        accesses.push_back({detail::text(access.token), *rights[i].c(), access.measures});
    }
    const auto hosts = detail::texts(options.hosts), origins = detail::texts(options.origins);
    std::vector<milieu_http_page> pages;
    for (const HttpPage &page : options.pages) {
        pages.push_back({detail::text(page.path), detail::text(page.media_type),
            detail::text(page.content)});
    }
    milieu_http_options given = options.bounds;
    given.for_others = options.for_others;
    given.address = detail::text(options.address);
    given.accesses = accesses.data();
    given.access_count = accesses.size();
    given.hosts = hosts.data();
    given.host_count = hosts.size();
    given.origins = origins.data();
    given.origin_count = origins.size();
    given.pages = pages.data();
    given.page_count = pages.size();
    milieu_component *server;
    detail::check(milieu_http_serve(streams.c(), &given, &server));
    return Component(server);
}

/* ---------------------------------------------------------------- MQTT */

/** Topics that become events. */
struct MqttInput {
    /** Which topics: `zigbee2mqtt/+`. */
    std::string_view filter;
    /** Below which name. */
    std::string_view under;
    /** In which mode payloads are; empty: any, numbers, text and bytes too. */
    std::string_view mode = {};
    /** Whether payloads are whole events, and not bodies alone. */
    bool whole_events = false;
    /** 0: at most once, 1: at least once, 2: exactly once. */
    std::uint32_t qos = 1;
};

/** A flow whose events are sent. */
struct MqttOutput {
    std::string_view flow;
    std::string_view topic;
    /** Whether the broker keeps the latest for those who come later. */
    bool retained = false;
    /** In which mode; empty is JSON. */
    std::string_view mode = {};
    /** Whether as whole events, and not bodies alone. */
    bool whole_events = false;
    /** Whether private fields go along, for whoever may read the topic. */
    bool with_private = false;
    /** 0: at most once, 1: at least once, 2: exactly once. */
    std::uint32_t qos = 1;
    /** What waits while the broker is down. */
    Delivery delivery = {};
};

/** What is to be said of a device or an entity: a text, a number, true or false. */
class MqttValue {
public:
    MqttValue(std::string_view value) noexcept : datum_(milieu_datum_text(detail::text(value))) {}
    MqttValue(const char *value) noexcept : MqttValue(std::string_view(value)) {}
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    MqttValue(T value) noexcept {
        if constexpr (std::is_same_v<T, bool>) datum_ = milieu_datum_bool(value);
        else if constexpr (std::is_floating_point_v<T>) datum_ = milieu_datum_number(value);
        else datum_ = milieu_datum_whole(static_cast<std::int64_t>(value));
    }
    /** The datum of the C interface. */
    const milieu_datum &c() const noexcept { return datum_; }

private:
    milieu_datum datum_;
};

/** More about a device or an entity, by Home Assistant's name: `unit_of_measurement` is `°C`. */
using MqttOption = std::pair<std::string_view, MqttValue>;

/** One thing that Home Assistant shows. */
struct MqttEntity {
    /** Letters, digits, `-` and `_`, which stay the same. */
    std::string_view id;
    /** `sensor`, `binary_sensor` */
    std::string_view platform;
    /** What people call it. */
    std::string_view name;
    /** Where its state comes: mostly the topic of an output. */
    std::string_view state_topic;
    std::vector<MqttOption> options = {};
};

/** A device that Home Assistant discovers. */
struct MqttDevice {
    /** Letters, digits, `-` and `_`, which stay the same. */
    std::string_view id;
    /** What people call it. */
    std::string_view name;
    std::vector<MqttEntity> entities = {};
    /** `mf` for who made it, `mdl` for the model, `sw` for the version. */
    std::vector<MqttOption> about = {};
};

/** How a connection is made. */
struct MqttOptions {
    /** The broker's host. Connections are not encrypted. */
    std::string_view host;
    /** Letters, digits, `-` and `_`: this program's alone, and the same after a restart. */
    std::string_view client_id;
    std::uint16_t port = 1883;
    /** For a broker that asks who this is. */
    std::string_view user = {};
    std::string_view password = {};
    std::vector<MqttInput> inputs = {};
    std::vector<MqttOutput> outputs = {};
    std::vector<MqttDevice> devices = {};
    /** Where `online` and `offline` are said; empty is `milieu/CLIENT-ID/status`. */
    std::string_view availability = {};
    /** Home Assistant's prefix; empty is `homeassistant`. */
    std::string_view discovery_prefix = {};
    /** Its keep-alive and its numbers are the bounds; all else of it is said above. */
    milieu_mqtt_options bounds = MILIEU_MQTT_OPTIONS;
};

namespace detail {

/** Options as C has them, for as long as the others are there. */
inline std::vector<milieu_mqtt_option> mqtt_options(const std::vector<MqttOption> &all) {
    std::vector<milieu_mqtt_option> options;
    for (const auto &[name, value] : all) options.push_back({text(name), value.c()});
    return options;
}

} // namespace detail

/** Connects to a broker, and keeps at it until what is returned goes. One that is down is a status. */
inline Component connect_mqtt(const Streams &streams, const MqttOptions &options) {
    std::vector<milieu_mqtt_input> inputs;
    for (const MqttInput &input : options.inputs) {
        inputs.push_back({detail::text(input.filter), detail::text(input.under),
            detail::text(input.mode), input.whole_events, input.qos});
    }
    std::vector<milieu_delivery> deliveries;
    for (const MqttOutput &output : options.outputs) {
        deliveries.push_back({MILIEU_ABI, output.delivery.capacity,
            static_cast<std::uint32_t>(output.delivery.overflow)});
    }
    std::vector<milieu_mqtt_output> outputs;
    for (const MqttOutput &output : options.outputs) {
        outputs.push_back({detail::text(output.flow), detail::text(output.topic),
            detail::text(output.mode), output.whole_events, output.retained,
            output.with_private, output.qos, &deliveries[outputs.size()]});
    }
    // What a vector holds stays where it is when the vector moves.
    std::vector<std::vector<milieu_mqtt_option>> kept;
    std::vector<std::vector<milieu_mqtt_entity>> entities;
    std::vector<milieu_mqtt_device> devices;
    for (const MqttDevice &device : options.devices) {
        std::vector<milieu_mqtt_entity> of;
        for (const MqttEntity &entity : device.entities) {
            const auto &more = kept.emplace_back(detail::mqtt_options(entity.options));
            of.push_back({detail::text(entity.id), detail::text(entity.platform),
                detail::text(entity.name), detail::text(entity.state_topic), more.data(),
                more.size()});
        }
        const auto &about = kept.emplace_back(detail::mqtt_options(device.about));
        const auto &all = entities.emplace_back(std::move(of));
        devices.push_back({detail::text(device.id), detail::text(device.name), about.data(),
            about.size(), all.data(), all.size()});
    }
    milieu_mqtt_options given = options.bounds;
    given.host = detail::text(options.host);
    given.client_id = detail::text(options.client_id);
    given.port = options.port;
    given.user = detail::text(options.user);
    given.password = detail::text(options.password);
    given.availability = detail::text(options.availability);
    given.discovery_prefix = detail::text(options.discovery_prefix);
    given.inputs = inputs.data();
    given.input_count = inputs.size();
    given.outputs = outputs.data();
    given.output_count = outputs.size();
    given.devices = devices.data();
    given.device_count = devices.size();
    milieu_component *connection;
    detail::check(milieu_mqtt_connect(streams.c(), &given, &connection));
    return Component(connection);
}

} // namespace milieu

#endif
