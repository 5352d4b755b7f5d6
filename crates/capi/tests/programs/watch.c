/* What another program writes is told, and is there at the next synchronization. argv[1] is an
 * empty folder. */

#include "check.h"
#include "station.h"

#include <pthread.h>
#include <time.h>

struct seen {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int changed, refused, destroyed;
    char name[100], before[100], after[100], origin[300], message[500];
    milieu_watch *own;
};

static void take(char *place, size_t size, milieu_text text) {
    snprintf(place, size, MILIEU_TEXT_FORMAT, MILIEU_TEXT_ARGUMENTS(text));
}

static void tell(void *user, const milieu_news *news) {
    struct seen *seen = user;
    CHECK(pthread_mutex_lock(&seen->mutex) == 0);
    if (news->kind == MILIEU_CHANGED) {
        CHECK(news->count == 1 && news->message.length == 0 && !news->changes->secret);
        take(seen->name, sizeof seen->name, news->changes->name);
        take(seen->before, sizeof seen->before, news->changes->before);
        take(seen->after, sizeof seen->after, news->changes->after);
        take(seen->origin, sizeof seen->origin, news->changes->origin);
        if (seen->changed == 0) CHECK(!news->changes->before.bytes);
        seen->changed++;
    } else if (news->kind == MILIEU_KEYS_REFUSED) {
        take(seen->message, sizeof seen->message, news->message);
        seen->refused++;
        /* Enough: it may free itself. */
        milieu_watch_free(seen->own);
    }
    CHECK(pthread_cond_signal(&seen->condition) == 0);
    CHECK(pthread_mutex_unlock(&seen->mutex) == 0);
}

static void destroyed(void *user) {
    struct seen *seen = user;
    CHECK(pthread_mutex_lock(&seen->mutex) == 0);
    seen->destroyed++;
    CHECK(pthread_cond_signal(&seen->condition) == 0);
    CHECK(pthread_mutex_unlock(&seen->mutex) == 0);
}

static void wait_until(struct seen *seen, const int *count, int least) {
    struct timespec late;
    clock_gettime(CLOCK_REALTIME, &late);
    late.tv_sec += 120;
    CHECK(pthread_mutex_lock(&seen->mutex) == 0);
    while (*count < least)
        CHECK(pthread_cond_timedwait(&seen->condition, &seen->mutex, &late) == 0);
    CHECK(pthread_mutex_unlock(&seen->mutex) == 0);
}

/* Another program, with other rules or none. */
static void elsewhere(const milieu_options *options, const char *name, const char *value) {
    milieu_coordinator *other;
    OK(milieu_coordinator_open(milieu_text_of("station"), options, &other));
    OK(milieu_coordinator_assign(other, milieu_text_of(name), milieu_text_of(value)));
    OK(milieu_coordinator_persist(other, milieu_text_of("/"), NULL));
    milieu_coordinator_free(other);
}

int main(int argc, char **argv) {
    milieu_coordinator *coordinator;
    milieu_context *cx;
    const struct station *env;
    milieu_watch *watch;
    milieu_options options = MILIEU_OPTIONS;
    struct seen seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, "", "", "",
        "", "", NULL};
    size_t written;
    bool news, is_default;
    CHECK(argc == 2);
    options.user_folder = options.system_folder = milieu_text_of(argv[1]);
    OK(milieu_coordinator_open(milieu_text_of("station"), &options, &coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(milieu_watch_new(coordinator, tell, &seen, destroyed, &seen.own));

    OK(milieu_context_is_default(cx, STATION_AT_STATION_INTERVAL, &is_default));
    CHECK(is_default);
    elsewhere(&options, "/station/%/interval", "90");
    /* Who waits is woken, and a callback is told. */
    OK(milieu_context_wait(cx, 120000000000, &news));
    CHECK(news && env->station.interval == 60);
    OK(milieu_context_sync(cx));
    CHECK(env->station.interval == 90);
    OK(milieu_context_is_default(cx, STATION_AT_STATION_INTERVAL, &is_default));
    CHECK(!is_default);
    wait_until(&seen, &seen.changed, 1);
    CHECK(strcmp(seen.name, "/station/%/interval") == 0);
    CHECK(strcmp(seen.before, "") == 0 && strcmp(seen.after, "90") == 0);
    CHECK(strstr(seen.origin, argv[1]) && strstr(seen.origin, "station.ini"));
    elsewhere(&options, "/station/%/interval", "91");
    wait_until(&seen, &seen.changed, 2);
    CHECK(strcmp(seen.before, "90") == 0 && strcmp(seen.after, "91") == 0);

    /* What breaks the rules is refused, and what was in force stays. */
    elsewhere(&options, "/station/%/interval", "never");
    wait_until(&seen, &seen.refused, 1);
    CHECK(strstr(seen.message, "/station/%/interval") && strstr(seen.message, "never"));
    wait_until(&seen, &seen.destroyed, 1);
    OK(milieu_context_sync(cx));
    CHECK(env->station.interval == 91);

    /* Without a callback, and a conflict that is decided. */
    elsewhere(&options, "/station/%/interval", "92");
    OK(milieu_watch_new(coordinator, NULL, NULL, NULL, &watch));
    milieu_watch_free(watch);
    elsewhere(&options, "/value", "5");
    OK(station_set_value(cx, 6));
    EXPECT(MILIEU_FILES, milieu_coordinator_persist(coordinator, milieu_text_of("/"), &written));
    EXPECT(MILIEU_NO_SUCH, milieu_coordinator_persist_with(coordinator, milieu_text_of("/"),
                               (milieu_strategy)9, &written));
    OK(milieu_coordinator_persist_with(
        coordinator, milieu_text_of("/"), MILIEU_THEIRS, &written));
    OK(milieu_context_sync(cx));
    CHECK(env->value == 5);
    elsewhere(&options, "/value", "7");
    OK(station_set_value(cx, 8));
    OK(milieu_coordinator_persist_with(coordinator, milieu_text_of("/"), MILIEU_OURS, &written));
    CHECK(written == 1 && env->value == 8);

    /* Whether something could be assigned. */
    OK(milieu_coordinator_check(
        coordinator, milieu_text_of("/station/%/interval"), milieu_text_of("70")));
    EXPECT(MILIEU_INVALID, milieu_coordinator_check(coordinator,
                               milieu_text_of("/station/%/interval"), milieu_text_of("0")));
    milieu_text role;
    OK(milieu_context_role(cx, &role));
    CHECK(role.length == 0);
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
    return 0;
}
