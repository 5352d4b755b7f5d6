#include "sensors.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

using namespace std::chrono_literals;
using station::Environment;

/** What a file begins with. */
std::string word(const std::filesystem::path &path) {
    std::ifstream file(path);
    std::string word;
    if (!(file >> word)) throw std::runtime_error(path.string() + ": cannot be read");
    return word;
}

milieu::Span look_at_load(const milieu::Feed &feed, const Environment &env) {
    const std::filesystem::path root = env.sw.pi.sensors.root.get();
    feed.publish(Load{std::stod(word(root / "proc/loadavg"))});
    return std::chrono::seconds(env.sw.pi.sensors.interval);
}

milieu::Span look_at_battery(const milieu::Feed &feed, const Environment &env) {
    const std::filesystem::path root = env.sw.pi.sensors.root.get();
    const std::filesystem::directory_iterator supplies(root / "sys/class/power_supply");
    for (const auto &supply : supplies) {
        const auto &at = supply.path();
        // A mouse has a battery, too; its scope is the device.
        if (word(at / "type") == "Battery" && !exists(at / "scope")) {
            feed.publish(Battery{
                std::stod(word(at / "capacity")), word(at / "status") == "Discharging"});
        }
    }
    return std::chrono::seconds(env.sw.pi.sensors.interval);
}

/** Which file it looks at changes with the layer Profile. */
milieu::Span look_at_contact(const milieu::Feed &feed, const Environment &env) {
    const auto &gpio = env.hw.pi.gpio;
    auto path = std::filesystem::path(gpio.folder.get()) / gpio.tamper.get();
    if (is_directory(path)) path /= "value";
    feed.publish(Contact{!gpio.tamper.empty() && word(path) == "1"});
    return 100ms;
}

/** A source that looks every so often. While it cannot look, its status says why. */
template <class Look>
auto sampler(const milieu::Coordinator &coordinator, Look look) {
    return [tc = Context(coordinator), look](const milieu::Feed &feed) {
        tc.syncLayers();
        try {
            const auto pause = look(feed, *tc);
            feed.working();
            return milieu::Wait::until(feed.now() + pause);
        } catch (const std::exception &error) {
            feed.failing(error.what());
            return milieu::Wait::until(feed.now() + 1s);
        }
    };
}

/** A source that replays the recording, year after year, from the day that it is today. */
class Replay {
public:
    explicit Replay(const milieu::Coordinator &coordinator) : tc_(coordinator) {
        const std::time_t today = std::time(nullptr);
        std::tm day{};
        gmtime_r(&today, &day);
        day.tm_year = 113;
        now_ = milieu::Time(std::chrono::seconds(timegm(&day)));
        // What was two days before comes at once, so that there is a curve.
        open();
        while (next_row().time < now_ - 48h) {}
    }

    milieu::Wait operator()(const milieu::Feed &feed) {
        tc_.syncLayers();
        const std::int64_t speed = tc_->sw.pi.replay.speed;
        const auto elapsed = last_ ? std::min<milieu::Span>(feed.now() - *last_, 10s) : 0s;
        last_ = feed.now();
        now_ += elapsed * speed;
        for (; row_.time <= now_; next_row()) feed.publish(row_);
        feed.working();
        // Another speed is noticed after a second.
        const milieu::Span left = (row_.time - now_) / std::max(speed, std::int64_t(1));
        return milieu::Wait::until(feed.now() + std::min<milieu::Span>(left, 1s));
    }

private:
    const Observation &next_row() {
        std::string line;
        if (!std::getline(file_, line)) {
            open();
            now_ -= 365 * 24h;
            return next_row();
        }
        std::vector<std::string> columns;
        std::istringstream rest(line);
        for (std::string column; std::getline(rest, column, ',');) columns.push_back(column);
        const auto number = [&](std::size_t at) {
            return columns.at(at).empty() ? NAN : std::stod(columns[at]);
        };
        std::tm time{};
        strptime(columns.at(0).c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
        const auto airport = std::find(std::begin(AIRPORTS), std::end(AIRPORTS), columns.at(1));
        row_ = {milieu::Time(std::chrono::seconds(timegm(&time))),
            Airport(airport - std::begin(AIRPORTS)), number(2), number(6), number(8)};
        return row_;
    }
    void open() {
        file_ = std::ifstream(RECORDING);
        std::string heading;
        if (!std::getline(file_, heading)) throw std::runtime_error(RECORDING ": cannot be read");
    }

    Context tc_;
    std::ifstream file_;
    Observation row_{};
    /** The replayed time. */
    milieu::Time now_;
    std::optional<milieu::Time> last_;
};

} // namespace

Sensors::Sensors(const milieu::Coordinator &coordinator) : streams_(coordinator) {
    show("/weather/observations", [](Readings &readings, const milieu::Event &event) {
        const auto &observation = event.get<Observation>();
        readings.weather.insert_or_assign(observation.station, observation);
    });
    show("/weather/temperature", [](Readings &readings, const milieu::Event &event) {
        auto &all = readings.temperatures;
        all.push_back(event.field("value").number().value());
        if (all.size() > 168) all.pop_front();
    });
    show("/machine/load", [](Readings &readings, const milieu::Event &event) {
        readings.load = event.get<Load>();
    });
    show("/machine/battery", [](Readings &readings, const milieu::Event &event) {
        readings.battery = event.get<Battery>();
    });
    apply();
    sources_.push_back(streams_.source("/weather/observations", Replay(coordinator)));
    sources_.push_back(streams_.source("/machine/load", sampler(coordinator, look_at_load)));
    sources_.push_back(streams_.source("/machine/battery", sampler(coordinator, look_at_battery)));
    sources_.push_back(streams_.source("/tamper/contact", sampler(coordinator, look_at_contact)));
}

template <class Show>
void Sensors::show(std::string_view flow, Show show) {
    shown_.push_back(streams_.listen(flow, [this, show](const milieu::Event &event) {
        const std::lock_guard<std::mutex> lock(mutex_);
        show(readings_, event);
    }));
}

void Sensors::apply() {
    std::ifstream file(FLOW);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) throw std::runtime_error(FLOW ": cannot be read");
    // A name has one publisher at a time, so that what was applied before goes first.
    applied_.reset();
    try {
        applied_.emplace(streams_.apply(FLOW, text));
        flow_ = text;
    } catch (const milieu::Error &) {
        if (!flow_.empty()) applied_.emplace(streams_.apply(FLOW, flow_));
        throw;
    }
}

Readings Sensors::readings() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return readings_;
}
