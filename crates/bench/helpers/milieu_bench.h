/* Makes a C program an application of `milieu bench`; this file is all of it.
 *
 *     #include "milieu_bench.h"
 *
 *     int main(void) {
 *         struct milieu_bench bench;
 *         double iterations;
 *         if (!milieu_bench_start(&bench)) return 1;
 *         if (!milieu_bench_number(&bench, "iterations", &iterations))
 *             return milieu_bench_error("how often?");
 *         milieu_bench_result("seconds", work(iterations));
 *         return 0;
 *     }
 *
 * Each thing that was measured is one call of milieu_bench_result. Names and
 * texts are shorter than 256 bytes; what does not fit is not found.
 */
#ifndef MILIEU_BENCH_H
#define MILIEU_BENCH_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the application is told: one line of JSON. */
struct milieu_bench {
    char line[64 * 1024];
};

/* Behind blanks. */
static inline const char *milieu_bench_blank(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Behind a text in quotes, which goes to `into` if that is not NULL and it fits;
 * NULL if there is no such text. */
static inline const char *milieu_bench_text_at(const char *at, char *into, size_t size) {
    size_t length = 0;
    if (*at++ != '"') return NULL;
    while (*at != '"') {
        char c = *at++;
        if (c == '\0') return NULL;
        if (c == '\\') {
            c = *at++;
            switch (c) {
            case 'n': c = '\n'; break;
            case 't': c = '\t'; break;
            case 'r': c = '\r'; break;
            case 'b': c = '\b'; break;
            case 'f': c = '\f'; break;
            case 'u': {
                /* Control characters; all others come as they are. */
                char digits[5] = {0};
                if (strlen(at) < 4) return NULL;
                memcpy(digits, at, 4);
                at += 4;
                c = (char)strtol(digits, NULL, 16);
                break;
            }
            case '\0': return NULL;
            default: break;
            }
        }
        if (into != NULL) {
            if (length + 1 >= size) return NULL;
            into[length++] = c;
        }
    }
    if (into != NULL) into[length] = '\0';
    return at + 1;
}

/* Behind a value of any kind; NULL where the line ends within it. */
static inline const char *milieu_bench_skip(const char *at) {
    size_t depth = 0;
    for (;;) {
        at = milieu_bench_blank(at);
        if (*at == '\0') return NULL;
        if (*at == '"') {
            at = milieu_bench_text_at(at, NULL, 0);
            if (at == NULL) return NULL;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
            continue;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            at++;
            continue;
        } else {
            at += strcspn(at, ",:]} \t\r\n");
        }
        if (depth == 0) return at;
    }
}

/* The value of a member of an object; NULL if there is none. */
static inline const char *milieu_bench_member(const char *at, const char *name) {
    char known[256];
    at = milieu_bench_blank(at);
    if (*at != '{') return NULL;
    at++;
    for (;;) {
        at = milieu_bench_blank(at);
        if (*at == ',') at = milieu_bench_blank(at + 1);
        const char *behind = milieu_bench_text_at(at, known, sizeof known);
        bool is_it = behind != NULL && strcmp(known, name) == 0;
        if (behind == NULL) behind = milieu_bench_text_at(at, NULL, 0);
        if (behind == NULL) return NULL;
        at = milieu_bench_blank(behind);
        if (*at++ != ':') return NULL;
        at = milieu_bench_blank(at);
        if (is_it) return at;
        at = milieu_bench_skip(at);
        if (at == NULL) return NULL;
    }
}

/* Reads what the application is told; false if there is nothing. */
static inline bool milieu_bench_start(struct milieu_bench *bench) {
    return fgets(bench->line, (int)sizeof bench->line, stdin) != NULL;
}

static inline const char *milieu_bench_parameter(const struct milieu_bench *bench,
                                                 const char *name) {
    const char *parameters = milieu_bench_member(bench->line, "parameters");
    return parameters == NULL ? NULL : milieu_bench_member(parameters, name);
}

/* A parameter that is a number; false if there is none of this name. */
static inline bool milieu_bench_number(const struct milieu_bench *bench, const char *name,
                                       double *into) {
    const char *at = milieu_bench_parameter(bench, name);
    char *end = NULL;
    if (at == NULL) return false;
    *into = strtod(at, &end);
    return end != at;
}

/* A parameter that is a text, with its end in `into`; false if there is none of this
 * name, or it does not fit. */
static inline bool milieu_bench_text(const struct milieu_bench *bench, const char *name,
                                     char *into, size_t size) {
    const char *at = milieu_bench_parameter(bench, name);
    return at != NULL && size > 0 && milieu_bench_text_at(at, into, size) != NULL;
}

static inline void milieu_bench_quote(const char *text) {
    putchar('"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20) printf("\\u%04x", c);
        else putchar(c);
    }
    putchar('"');
}

/* Tells something that was measured. */
static inline void milieu_bench_result(const char *name, double value) {
    printf("{\"result\":{");
    milieu_bench_quote(name);
    printf(":%.17g}}\n", value);
    fflush(stdout);
}

static inline int milieu_bench_why(const char *what, const char *why) {
    printf("{\"%s\":", what);
    milieu_bench_quote(why);
    printf("}\n");
    fflush(stdout);
    return 1;
}

/* Tells why nothing was measured; 1, for main to return. */
static inline int milieu_bench_error(const char *why) {
    return milieu_bench_why("error", why);
}

/* Tells why what was measured means nothing; 0, as the program did what it should. */
static inline int milieu_bench_invalid(const char *why) {
    return milieu_bench_why("invalid", why) - 1;
}

/* Tells that what comes later may start, with a number for it, as a port. */
static inline void milieu_bench_ready(const char *name, double value) {
    printf("{\"ready\":{");
    milieu_bench_quote(name);
    printf(":%.17g}}\n", value);
    fflush(stdout);
}

#endif
