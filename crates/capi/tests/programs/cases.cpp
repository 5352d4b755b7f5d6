// The cases of crates/context/tests/cases/layers.txt, as C++ has them: argv[1] is the file.

#include "check.hpp"
#include "one.hpp"

#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

using Context = milieu::ThreadContext<one::Environment>;
using one::layer::A;

struct Step {
    int line;
    std::string text;
};

struct Case {
    std::string name;
    std::vector<Step> steps;
};

static std::vector<Case> cases(const char *file) {
    std::vector<Case> all;
    std::ifstream in(file);
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        if (line.compare(0, 5, "case ") == 0) {
            all.push_back({line.substr(5), {}});
        } else {
            all.back().steps.push_back({number, line});
        }
    }
    return all;
}

struct Running {
    milieu::Coordinator c;
    std::vector<std::string> ran;
    std::vector<Step>::const_iterator next, end;

    static std::pair<std::string, std::string> split(const std::string &text) {
        auto at = text.find(' ');
        if (at == std::string::npos) return {text, ""};
        return {text.substr(0, at), text.substr(at + 1)};
    }

    static void same(int line, const std::string &is, const std::string &expected) {
        if (is == expected) return;
        std::cerr << "line " << line << ": `" << is << "`, not `" << expected << "`\n";
        std::exit(1);
    }

    template <class Range, class Text>
    static std::string joined(const Range &range, Text text) {
        std::string all;
        for (const auto &one : range) all += (all.empty() ? "" : " ") + text(one);
        return all;
    }

    // Runs steps, those of a block up to its end.
    void run(Context &here, Context &there) {
        while (next != end) {
            const Step &step = *next++;
            auto [word, rest] = split(step.text);
            if (word == "leave") return;
            if (word == "ran") {
                same(step.line, joined(ran, [](const std::string &it) { return it; }), rest);
                ran.clear();
            } else if (word == "everywhere") {
                here.sync();
                there.sync();
                same(step.line, std::to_string(here->v), rest);
                same(step.line, std::to_string(there->v), rest);
            } else if (word == "new") {
                same(step.line, std::to_string(Context(c)->v), rest);
            } else if (word == "keys") {
                auto lock = c.requireLock();
                auto text = [](const milieu::Key &key) {
                    return std::string(key.name) + "=" + std::string(key.value);
                };
                same(step.line, joined(lock.keys(), text), rest);
            } else {
                ASSERT(word == "here" || word == "there");
                auto [verb, value] = split(rest);
                if (value == "''") value.clear();
                Context &cx = word == "here" ? here : there;
                if (verb == "enter") {
                    cx.with<A>(value)([&] { run(here, there); });
                } else if (verb == "without") {
                    cx.without<A>()([&] { run(here, there); });
                } else if (verb == "activate") {
                    cx.activate<A>(value);
                } else if (verb == "deactivate") {
                    cx.deactivate<A>();
                } else if (verb == "sync") {
                    cx.syncLayers();
                } else if (verb == "set") {
                    cx->v = std::stoi(value);
                } else if (verb == "is") {
                    same(step.line, std::to_string(cx->v), value);
                } else if (verb == "name") {
                    same(step.line, cx->v.getName(), value);
                } else {
                    std::cerr << "line " << step.line << ": there is no verb `" << verb << "`\n";
                    std::exit(1);
                }
            }
        }
    }
};

int main(int argc, char **argv) {
    ASSERT(argc == 2);
    auto all = cases(argv[1]);
    ASSERT(all.size() > 14);
    for (const Case &it : all) {
        Running running;
        running.next = it.steps.begin();
        running.end = it.steps.end();
        for (auto key : {"1", "2", "9"}) running.c.assign(std::string("/v/") + key, key);
        auto on = running.c.onLayerActivation<A>(
            [&](milieu::Activation &a) { running.ran.push_back("+" + std::string(a.value())); });
        auto off = running.c.onLayerDeactivation<A>([&] { running.ran.push_back("-"); });
        Context here(running.c), there(running.c);
        running.run(here, there);
        ASSERT(running.next == running.end);
    }
}
