/* The cases of crates/context/tests/cases/layers.txt, as C has them: argv[1] is the file,
 * argv[2] a folder for what they write. */

#include "cases.h"
#include "check.h"

#include <pthread.h>
#include <sys/stat.h>

/* A line of the description, and where the block ends that it begins. */
struct line {
    int number, end;
    char text[200];
};

static struct line lines[2000];
static int count;

static milieu_coordinator *coordinator;
static char folder[500], ran[500];
static pthread_t main_thread;
static milieu_registration *registrations[32];
static int registered;

/* Here and there. */
static milieu_context *contexts[2];
static const struct cases *environments[2];

static const struct {
    const char *name;
    uint32_t index;
} values[] = {
    {"v", CASES_AT_V},
    {"joined", CASES_AT_JOINED},
    {"twice", CASES_AT_TWICE},
    {"group", CASES_AT_GROUP},
    {"shared", CASES_AT_SHARED},
    {"one.shared", CASES_AT_ONE_SHARED},
    {"language", CASES_AT_P_LANGUAGE},
    {"hello", CASES_AT_P_HELLO},
    {"reply", CASES_AT_P_REPLY},
    {"first", CASES_AT_C_FIRST},
    {"second", CASES_AT_C_SECOND},
    {"interval", CASES_AT_LOW_INTERVAL},
};

static void load(const char *file) {
    int open[16], depth = 0;
    FILE *in = fopen(file, "r");
    CHECK(in);
    for (int number = 1; fgets(lines[count].text, sizeof lines->text, in); number++) {
        struct line *line = &lines[count];
        size_t length = strcspn(line->text, "\n");
        line->text[length] = 0;
        if (length == 0 || line->text[0] == '#') continue;
        line->number = number;
        line->end = count;
        if (strcmp(line->text, "}") == 0) lines[open[--depth]].end = count;
        else if (line->text[length - 1] == '{') open[depth++] = count, line->text[length - 2] = 0;
        CHECK(++count < (int)(sizeof lines / sizeof *lines));
    }
    fclose(in);
    CHECK(depth == 0);
}

static _Noreturn void wrong(int number, const char *is, const char *expected) {
    fprintf(stderr, "line %d: `%s`, not `%s`\n", number, is, expected);
    exit(1);
}

static void same(int number, const char *is, const char *expected) {
    if (strcmp(is, expected) != 0) wrong(number, is, expected);
}

/* Cuts a text at the first of these, and gives what is behind it. */
static char *cut(char *text, char at) {
    char *found = strchr(text, at);
    if (!found) return text + strlen(text);
    *found = 0;
    return found + 1;
}

static milieu_layer layer(char *text) {
    char *value = cut(text, ' ');
    return milieu_layer_of(text, strcmp(value, "''") == 0 ? "" : value);
}

static uint32_t value_of(const char *name) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].name, name) == 0) return values[i].index;
    fprintf(stderr, "there is no value `%s`\n", name);
    exit(1);
}

/* What a field reads: the table says where it is. */
static const char *read_value(const struct cases *env, const char *name) {
    static char text[200];
    const milieu_value *value = &cases_layout()->values[value_of(name)];
    const char *field = (const char *)env + value->offset;
    if (value->kind == MILIEU_TEXT)
        snprintf(text, sizeof text, MILIEU_TEXT_FORMAT,
            MILIEU_TEXT_ARGUMENTS(*(const milieu_text *)field));
    else
        snprintf(text, sizeof text, "%d", (int)*(const int32_t *)field);
    return text;
}

static void append(char *all, const char *first, const char *between, const char *second) {
    size_t used = strlen(all);
    CHECK(used + strlen(first) + strlen(between) + strlen(second) + 2 < sizeof ran);
    sprintf(all + used, "%s%s%s%s", used ? " " : "", first, between, second);
}

static const char *copy(milieu_text text) {
    static char copies[2][200];
    static int last;
    last = !last;
    snprintf(copies[last], sizeof *copies, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(text));
    return copies[last];
}

/* What every switch leaves. */
static milieu_result note(void *sign, milieu_activation *activation) {
    milieu_text id, value;
    OK(milieu_activation_layer(activation, &id));
    OK(milieu_activation_value(activation, &value));
    const char *name = copy(id);
    append(ran, name, sign, copy(value));
    return MILIEU_OK;
}

static void keep(milieu_registration *registration) {
    CHECK(registered < 32);
    registrations[registered++] = registration;
}

static void on_activation(const char *id, milieu_action action, void *user) {
    milieu_registration *registration;
    milieu_destroy destroy = action == note ? NULL : free;
    OK(milieu_coordinator_on_activation(
        coordinator, milieu_text_of(id), action, user, destroy, &registration));
    keep(registration);
}

/* An action of the description: `user` is what it does. */
static milieu_result act(void *user, milieu_activation *activation) {
    char text[200];
    strcpy(text, user);
    char *rest = cut(text, ' ');
    if (strcmp(text, "fails") == 0) return MILIEU_CALLBACK;
    if (strcmp(text, "activates") == 0) return milieu_activation_activate(activation, layer(rest));
    if (strcmp(text, "deactivates") == 0)
        return milieu_activation_deactivate(activation, milieu_text_of(rest));
    if (strcmp(text, "assigns") == 0) {
        char *value = cut(rest, '=');
        return milieu_coordinator_assign(
            coordinator, milieu_text_of(rest), milieu_text_of(value));
    }
    if (strcmp(text, "registers") == 0) {
        on_activation(rest, note, "+");
        return MILIEU_OK;
    }
    CHECK(strcmp(text, "owns") == 0);
    milieu_context *own;
    OK(cases_new(coordinator, NULL, &own, NULL));
    OK(milieu_context_activate(own, layer(rest)));
    return milieu_context_free(own);
}

/* A layer that contexts evaluate: `user` is what the description says of it. */
static milieu_result evaluate(void *user, milieu_scope *scope) {
    char text[200];
    strcpy(text, user);
    char *how = cut(text, ' '), *what = cut(how, ' '), *value = cut(what, ' ');
    append(ran, text, "?", pthread_equal(pthread_self(), main_thread) ? "" : "!");
    milieu_text answer = {NULL, 0};
    if (strcmp(how, "OF") == 0) answer = milieu_scope_get(scope, milieu_text_of(what));
    else if (milieu_text_is(milieu_scope_role(scope), what)) answer = milieu_text_of(value);
    return milieu_text_is(answer, "boom") ? MILIEU_CALLBACK : milieu_scope_answer(scope, answer);
}

static void make(int who) {
    milieu_context_options options = MILIEU_CONTEXT_OPTIONS;
    options.role = milieu_text_of(who ? "/there" : "/here");
    OK(cases_new(coordinator, &options, &contexts[who], &environments[who]));
}

static milieu_coordinator *opened(void) {
    milieu_coordinator *made;
    milieu_options options = MILIEU_OPTIONS;
    options.user_folder = options.system_folder = milieu_text_of(folder);
    OK(milieu_coordinator_open(milieu_text_of("cases"), &options, &made));
    return made;
}

static void start(void) {
    coordinator = opened();
    for (const char *id = "a\0b\0c\0"; *id; id += 2) {
        milieu_registration *registration;
        on_activation(id, note, "+");
        OK(milieu_coordinator_on_deactivation(
            coordinator, milieu_text_of(id), note, "-", NULL, &registration));
        keep(registration);
    }
    make(0);
    make(1);
}

/* Actions go after their coordinator. */
static void stop(void) {
    OK(milieu_context_free(contexts[0]));
    OK(milieu_context_free(contexts[1]));
    milieu_coordinator_free(coordinator);
    while (registered) milieu_registration_free(registrations[--registered]);
}

static bool run(int from, int to);

/* A block of one context: says whether something was thrown. */
static bool inside(milieu_context *cx, milieu_frame frame, const struct line *line) {
    bool thrown = run((int)(line - lines) + 1, line->end);
    OK(milieu_context_leave(cx, frame));
    return thrown;
}

/* A step of one context. */
static milieu_result of_context(int who, char *verb, const struct line *line, bool *thrown) {
    milieu_context *cx = contexts[who];
    milieu_frame frame;
    milieu_text text;
    milieu_result result = MILIEU_OK;
    char *rest = cut(verb, ' ');
#define IS(name) (strcmp(verb, name) == 0)
    if (IS("enter")) {
        milieu_layer layers[4];
        size_t entered = 0;
        for (char *next = rest; *next; next = rest) {
            rest = cut(next, ',');
            rest += *rest == ' ';
            layers[entered++] = layer(next);
        }
        result = entered == 1 ? milieu_context_enter(cx, layers[0], &frame)
                              : milieu_context_enter_all(cx, layers, entered, &frame);
        if (result == MILIEU_OK) *thrown = inside(cx, frame, line);
    } else if (IS("without")) {
        OK(milieu_context_enter(cx, milieu_layer_of(rest, ""), &frame));
        *thrown = inside(cx, frame, line);
    } else if (IS("enter-value")) {
        OK(milieu_context_enter_value(cx, value_of(rest), &frame));
        *thrown = inside(cx, frame, line);
    } else if (IS("activate")) {
        result = milieu_context_activate(cx, layer(rest));
    } else if (IS("deactivate")) {
        result = milieu_context_deactivate(cx, milieu_text_of(rest));
    } else if (IS("follow")) {
        result = milieu_context_activate_value(cx, value_of(rest));
    } else if (IS("each")) {
        char *user = strcpy(malloc(strlen(rest) + 1), rest);
        char *how = cut(rest, ' '), *pattern = cut(how, ' ');
        milieu_text depends_on = milieu_text_of(pattern);
        result = milieu_context_activate_each(cx, milieu_text_of(rest), &depends_on,
            strcmp(how, "OF") == 0, evaluate, user, free);
    } else if (IS("sync")) {
        result = milieu_context_sync(cx);
    } else if (IS("forget")) {
        result = milieu_context_forget(cx, layer(rest));
    } else if (IS("renew")) {
        OK(milieu_context_free(cx));
        make(who);
    } else if (IS("news")) {
        bool news;
        OK(milieu_context_has_news(cx, &news));
        same(line->number, news ? "yes" : "no", rest);
    } else if (IS("layers")) {
        const milieu_layer *layers;
        size_t active;
        char all[500] = "", last[200] = "";
        OK(milieu_context_layers(cx, &layers, &active));
        /* In the order of their identifiers. */
        for (size_t done = 0; done < active; done++) {
            const milieu_layer *next = NULL;
            for (const milieu_layer *it = layers; it < layers + active; it++)
                if (strcmp(copy(it->id), last) > 0
                    && (!next || strcmp(copy(it->id), copy(next->id)) < 0))
                    next = it;
            strcpy(last, copy(next->id));
            append(all, last, "=", copy(next->value));
        }
        same(line->number, all, rest);
    } else {
        char *more = cut(rest, ' ');
        uint32_t value = value_of(rest);
        if (IS("set")) {
            result = milieu_context_set_text(cx, value, milieu_text_of(more));
        } else if (IS("unset")) {
            result = milieu_context_unset(cx, value);
        } else if (IS("is")) {
            same(line->number, read_value(environments[who], rest), more);
        } else {
            CHECK(IS("name"));
            OK(milieu_context_name(cx, value, &text));
            same(line->number, copy(text), more);
        }
    }
    return result;
}

static void *elsewhere(void *line) {
    const struct line *block = line;
    CHECK(!run((int)(block - lines) + 1, block->end));
    return NULL;
}

static milieu_result step(char *verb, const struct line *line, bool *thrown) {
    int at = (int)(line - lines);
    char *rest = cut(verb, ' '), *more;
    if (IS("here")) return of_context(0, rest, line, thrown);
    if (IS("there")) return of_context(1, rest, line, thrown);
    if (IS("elsewhere")) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, elsewhere, (void *)line) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    } else if (IS("hold")) {
        milieu_hold *hold;
        OK(milieu_hold_new(coordinator, &hold));
        *thrown = run(at + 1, line->end);
        OK(milieu_hold_free(hold));
    } else if (IS("try")) {
        if (!run(at + 1, line->end)) wrong(line->number, "nothing", "thrown");
    } else if (IS("throw")) {
        *thrown = true;
    } else if (IS("key")) {
        more = cut(rest, '=');
        return milieu_coordinator_assign(coordinator, milieu_text_of(rest), milieu_text_of(more));
    } else if (IS("remove")) {
        return milieu_coordinator_remove(coordinator, milieu_text_of(rest));
    } else if (IS("action")) {
        more = cut(rest, ' ');
        on_activation(rest, act, strcpy(malloc(strlen(more) + 1), more));
    } else if (IS("another")) {
        milieu_coordinator *other = opened();
        more = cut(rest, '=');
        OK(milieu_coordinator_assign(other, milieu_text_of(rest), milieu_text_of(more)));
        OK(milieu_coordinator_persist(other, milieu_text_of("/"), NULL));
        milieu_coordinator_free(other);
    } else if (IS("persist")) {
        size_t written;
        char text[20];
        milieu_result result
            = milieu_coordinator_persist(coordinator, milieu_text_of("/"), &written);
        if (result != MILIEU_OK) return result;
        sprintf(text, "%zu", written);
        same(line->number, text, rest);
    } else if (IS("reopen")) {
        stop();
        start();
    } else if (IS("close")) {
        milieu_coordinator_free(coordinator);
        coordinator = NULL;
    } else if (IS("everywhere")) {
        more = cut(rest, ' ');
        for (int who = 0; who < 2; who++) OK(milieu_context_sync(contexts[who]));
        for (int who = 0; who < 2; who++)
            same(line->number, read_value(environments[who], rest), more);
    } else if (IS("new")) {
        milieu_context *cx;
        const struct cases *env;
        more = cut(rest, ' ');
        OK(cases_new(coordinator, NULL, &cx, &env));
        same(line->number, read_value(env, rest), more);
        OK(milieu_context_free(cx));
    } else if (IS("keys")) {
        milieu_hold *hold;
        const milieu_key *keys;
        size_t held;
        char all[500] = "";
        OK(milieu_hold_new(coordinator, &hold));
        OK(milieu_hold_keys(hold, &keys, &held));
        for (size_t i = 0; i < held; i++) {
            const char *name = copy(keys[i].name);
            append(all, name, "=", copy(keys[i].value));
        }
        OK(milieu_hold_free(hold));
        same(line->number, all, rest);
    } else {
        CHECK(IS("ran"));
        same(line->number, ran, rest);
        ran[0] = 0;
    }
    return MILIEU_OK;
}

static const char *why(milieu_result result) {
    switch (result) {
    case MILIEU_OK: return "";
    case MILIEU_CALLBACK: return "callback";
    case MILIEU_CYCLE: return "cycle";
    case MILIEU_INVALID: return "invalid";
    case MILIEU_FILES: return "conflict";
    case MILIEU_WRONG_NAME: return "name";
    default: return milieu_result_name(result);
    }
}

/* Runs the steps from one line to another: says whether something was thrown. */
static bool run(int from, int to) {
    for (int at = from; at < to; at = lines[at].end + 1) {
        char text[200], *verb = text, *expected = "";
        bool thrown = false;
        strcpy(text, lines[at].text);
        if (strncmp(text, "fails ", 6) == 0) {
            expected = text + 6;
            verb = cut(expected, ' ');
        }
        milieu_result result = step(verb, &lines[at], &thrown);
        same(lines[at].number, why(result), expected);
        if (thrown) return true;
    }
    return false;
}

static int next_case(int from) {
    while (from < count && strncmp(lines[from].text, "case ", 5) != 0) from++;
    return from;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    load(argv[1]);
    main_thread = pthread_self();
    int first = next_case(0);
    CHECK(first < count);
    for (int begin = first; begin < count; begin = next_case(begin + 1)) {
        snprintf(folder, sizeof folder, "%s/%d", argv[2], lines[begin].number);
        CHECK(mkdir(folder, 0700) == 0);
        ran[0] = 0;
        start();
        CHECK(!run(0, first));
        OK(milieu_context_sync(contexts[0]));
        OK(milieu_context_sync(contexts[1]));
        CHECK(!run(begin + 1, next_case(begin + 1)));
        stop();
    }
    return 0;
}
