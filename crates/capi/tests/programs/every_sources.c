/* Every function of sources.h with every kind of misuse that it can be told of. `list` prints their
 * names, which have to be those of the header. */

#include "check.h"

#include <milieu/sources.h>

/* What functions are handed; one of it is wrong at a time. */
struct arguments {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_source *replay;
    milieu_text text;
    /* Where results go: null, or the address of some memory. */
    void *out;
};

#include "every.h"

static size_t number;

static milieu_attribute told(struct arguments *a) {
    return (milieu_attribute){ milieu_text_of("root"), a->text };
}

/* A row that was recorded at the beginning of 2013. */
static const char row_of_2013[] = "time,n\n2013-01-01T00:00:00Z,1\n";

static milieu_source_terms in_memory(void) {
    milieu_source_terms terms = MILIEU_SOURCE_TERMS;
    terms.content = milieu_text_of(row_of_2013);
    return terms;
}

#define FUNCTIONS(R, S)                                                                       \
    R(milieu_sources, NONE, OUT, a->out, &number)                                             \
    R(milieu_source_open, OF(streams), TEXT | OUT, a->streams, milieu_text_of("/a"),          \
        milieu_text_of("machine.load"), (milieu_attribute[]){ told(a) }, 1, a->out)           \
    R(milieu_source_open_with, OF(streams), TEXT | OUT | CALLBACK, a->streams,                \
        milieu_text_of("/a"), a->text, NULL, 0, (milieu_source_terms[]){ in_memory() }, NULL, \
        destroy, a->out)                                                                      \
    R(milieu_replay_pause, OF(replay), 0, a->replay)                                          \
    R(milieu_replay_resume, OF(replay), 0, a->replay)                                         \
    R(milieu_replay_seek, OF(replay), 0, a->replay, 0)                                        \
    R(milieu_replay_pace, OF(replay), 0, a->replay, 2.0)                                      \
    R(milieu_replay_position, OF(replay), OUT, a->replay, a->out)

DEFINE(FUNCTIONS)

static void *memory[1];

static void make(struct arguments *a) {
    milieu_source_terms terms = in_memory();
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    OK(milieu_coordinator_new(&a->coordinator));
    OK(milieu_streams_new(a->coordinator, &options, &a->streams));
    OK(milieu_source_open_with(a->streams, milieu_text_of("/r"), milieu_text_of("replay.csv"), NULL,
        0, &terms, NULL, NULL, &a->replay));
    a->text = milieu_text_of("/");
    a->out = memory;
}

static void unmake(struct arguments *a) {
    milieu_source_free(a->replay);
    milieu_streams_free(a->streams);
    milieu_coordinator_free(a->coordinator);
}

/* Nobody waits within a callback for what waits for it. */
static milieu_result within(void *user, milieu_feed *feed) {
    struct arguments a = *(struct arguments *)user;
    expect(&rows[1], &a, MILIEU_BUSY, "within a callback");
    a.text = milieu_text_of("replay.csv");
    expect(&rows[2], &a, MILIEU_BUSY, "within a callback");
    for (size_t i = 3; i < count; i++) expect(&rows[i], &a, MILIEU_OK, "within a callback");
    destroyed = 0;
    return milieu_feed_end(feed);
}

int main(int argc, char **argv) {
    CHECK(argc < 3);
    if (argc == 2) {
        CHECK(strcmp(argv[1], "list") == 0);
        for (size_t i = 0; i < count; i++) puts(rows[i].name);
        return 0;
    }
    struct arguments good, freed;
    make(&freed);
    unmake(&freed);
    make(&good);
    for (size_t i = 0; i < count; i++) {
        misuse_texts(&rows[i], &good);
        if (rows[i].handle != NONE) mishandle(&rows[i], &good, &freed, good.coordinator);
    }
    for (size_t i = 3; i < count; i++) {
        struct arguments a = good;
        OK(milieu_source_open(good.streams, milieu_text_of("/t"), milieu_text_of("machine.load"),
            NULL, 0, &a.replay));
        expect(&rows[i], &a, MILIEU_INVALID, "a source that replays nothing");
        milieu_source_free(a.replay);
    }
    EXPECT(MILIEU_NULL, milieu_sources((const milieu_source_definition **)memory, NULL));
    milieu_text broken = { NULL, 3 }, name = milieu_text_of("/a");
    milieu_text load = milieu_text_of("machine.load");
    milieu_source *source;
    EXPECT(MILIEU_NULL, milieu_source_open(good.streams, broken, load, NULL, 0, &source));
    EXPECT(MILIEU_NULL, milieu_source_open(good.streams, name, broken, NULL, 0, &source));
    broken = milieu_text_of("\xc3(");
    EXPECT(MILIEU_NOT_UTF8, milieu_source_open(good.streams, broken, load, NULL, 0, &source));
    EXPECT(MILIEU_NOT_UTF8, milieu_source_open(good.streams, name, broken, NULL, 0, &source));

    milieu_source *polled;
    OK(milieu_source_new(
        good.streams, milieu_text_of("/p"), within, &good, destroy, &polled));
    int before = made;
    OK(milieu_streams_pass(good.streams, 1));
    CHECK(made == before + (int)count - 1);
    milieu_source_free(polled);
    CHECK(destroyed == 1);
    /* Nothing of it has changed anything: the name is free. */
    OK(milieu_source_open(good.streams, name, load, NULL, 0, &source));
    milieu_source_free(source);
    unmake(&good);
    printf("%d\n", made);
    return 0;
}
