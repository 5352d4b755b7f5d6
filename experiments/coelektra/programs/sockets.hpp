// The case study on nothing but sockets and threads: as little as can be around a page, so
// that contexts are as large a part of a request as they can be.
#pragma once

#include "case-study.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

template <class Kind>
class Sockets {
    using Context = typename CaseStudy<Kind>::Context;

public:
    explicit Sockets(CaseStudy<Kind> &study) : study_(study) {}

    /** Listens, and serves in threads from then on; returns the port. */
    int serve() {
        addrinfo hints{}, *found = nullptr;
        hints.ai_family = AF_INET;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(study_.options.host.c_str(), "0", &hints, &found) != 0) {
            std::fprintf(stderr, "nobody knows where %s is\n", study_.options.host.c_str());
            std::exit(1);
        }
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        socklen_t size = sizeof address;
        if (listener < 0 || bind(listener, found->ai_addr, found->ai_addrlen) != 0
            || listen(listener, 1024) != 0
            || getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size) != 0) {
            std::perror("cannot listen");
            std::exit(1);
        }
        freeaddrinfo(found);
        for (int i = 0; i < study_.options.threads; ++i) {
            std::thread([this, listener] { serves(listener); }).detach();
        }
        return ntohs(address.sin_port);
    }

private:
    void serves(int listener) {
        Context tc = study_.context();
        std::string answer;
        for (;;) {
            int connection = accept(listener, nullptr, nullptr);
            if (connection < 0) continue;
            char request[4096];
            std::size_t length = 0;
            for (;;) {
                ssize_t count = read(connection, request + length, sizeof request - 1 - length);
                if (count <= 0) break;
                length += static_cast<std::size_t>(count);
                request[length] = '\0';
                if (!std::strstr(request, "\r\n\r\n")) continue;
                respond(tc, request, answer);
                length = 0;
                if (!sent(connection, answer) || study_.options.closes) break;
            }
            close(connection);
        }
    }

    static bool sent(int connection, std::string_view text) {
        while (!text.empty()) {
            ssize_t count = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
            if (count <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(count));
        }
        return true;
    }

    void respond(const Context &tc, std::string_view request, std::string &answer) {
        std::size_t begin = request.find('/') + 1;
        std::string path(request.substr(begin, request.find(' ', begin) - begin));
        std::string body;
        body.reserve(256);
        Appending out{body};
        if (path == "begin") study_.begin();
        else if (path == "end") body = study_.end();
        else study_.page(tc, path, out);
        answer.assign("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n");
        if (study_.options.closes) answer += "Connection: close\r\n";
        answer += "Content-Length: ";
        answer += std::to_string(body.size());
        answer += "\r\n\r\n";
        answer += body;
    }

    CaseStudy<Kind> &study_;
};
