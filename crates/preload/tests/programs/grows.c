/* Threads that are as many levels deep as is said, of about 1 KB each, in all ways in which
   there can be some. What it says is the same however large their stacks are at first. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "check.h"
#include "depth.h"

/* That sanitizer refuses threads after a fork, and does not know those of C. */
#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define IS_WATCHED 1
#endif
#endif

static int levels, has_neighbour;
static sem_t is_done, may_go;

/* Something else is where a stack would grow. */
static void get_neighbour(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *found = MAP_FAILED;
    for (uintptr_t at = (uintptr_t)&page / page * page; found == MAP_FAILED; at -= page)
        found = mmap((void *)at, page, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void *is_deep(void *argument)
{
    if (has_neighbour)
        get_neighbour();
    CHECK(depth_of(levels) == levels);
    return argument;
}

static void *is_one_of_many(void *argument)
{
    CHECK(sem_wait(&may_go) == 0);
    CHECK(depth_of(levels / 4) == levels / 4);
    return argument;
}

static void joined(pthread_t thread)
{
    void *result;
    CHECK(pthread_join(thread, &result) == 0 && result == &levels);
}

static void *ends_alone(void *argument)
{
    CHECK(is_deep(argument) == argument);
    CHECK(sem_post(&is_done) == 0);
    return NULL;
}

static void *detaches_itself(void *argument)
{
    CHECK(pthread_detach(pthread_self()) == 0);
    return ends_alone(argument);
}

#ifndef IS_WATCHED
static int ends_alone_as_in_c(void *argument) { return ends_alone(argument) != NULL; }

static int is_deep_as_in_c(void *argument) { return is_deep(argument) == argument ? 7 : 8; }

static void as_in_c(void)
{
    thrd_t thread;
    int said;
    CHECK(thrd_create(&thread, is_deep_as_in_c, &levels) == thrd_success);
    CHECK(thrd_join(thread, &said) == thrd_success && said == 7);
    CHECK(thrd_create(&thread, ends_alone_as_in_c, &levels) == thrd_success);
    CHECK(thrd_detach(thread) == thrd_success && sem_wait(&is_done) == 0);
}
#endif

/* A thread that wants no signals is told that it has what it wants, and can go deep. */
static void *wants_no_signals(void *argument)
{
    sigset_t all, now, fault;
    CHECK(sigfillset(&all) == 0 && sigemptyset(&fault) == 0 && sigaddset(&fault, SIGSEGV) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &now) == 0 && !sigismember(&now, SIGSEGV));
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGSEGV));
    CHECK(sigprocmask(SIG_UNBLOCK, &fault, &now) == 0 && sigismember(&now, SIGSEGV));
    CHECK(sigprocmask(SIG_BLOCK, &fault, &now) == 0 && !sigismember(&now, SIGSEGV));
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGSEGV));
    CHECK(sigismember(&now, SIGUSR1));
    return is_deep(argument);
}

static void *has_what_its_creator_blocks(void *argument)
{
    sigset_t now;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGSEGV));
    return is_deep(argument);
}

static void *hands_on_what_it_blocks(void *argument)
{
    sigset_t all;
    pthread_t thread;
    CHECK(sigfillset(&all) == 0 && pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, has_what_its_creator_blocks, &levels) == 0);
    joined(thread);
    return argument;
}

/* How large it is, and that all of it can be used. */
static void *uses_what_it_has(void *argument)
{
    pthread_attr_t attr;
    void *start;
    size_t bytes, guard;
    char here;
    CHECK(pthread_getattr_np(pthread_self(), &attr) == 0);
    CHECK(pthread_attr_getstack(&attr, &start, &bytes) == 0);
    CHECK(pthread_attr_getguardsize(&attr, &guard) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    CHECK(&here > (char *)start && &here < (char *)start + bytes);
    printf("%zu bytes and %zu\n", bytes, guard);
    if (levels > 1)
        for (volatile char *at = &here; at >= (char *)start; at -= 512)
            *at = 1;
    return argument;
}

/* Waits, so that it is there in no fork. */
static void *stays(void *argument)
{
    CHECK(sem_wait(&may_go) == 0);
    return argument;
}

static void *has_a_child(void *argument)
{
    int status;
    pid_t child;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, stays, &levels) == 0);
    CHECK(depth_of(levels / 2) == levels / 2);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(depth_of(levels) == levels);
#ifndef IS_WATCHED
        CHECK(pthread_join(other, NULL) == 0);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, is_deep, &levels) == 0);
        joined(thread);
#endif
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    CHECK(sem_post(&may_go) == 0);
    joined(other);
    CHECK(depth_of(levels) == levels);
    return argument;
}

static void *is_cancelled(void *argument)
{
    CHECK(depth_of(levels) == levels);
    CHECK(sem_post(&is_done) == 0);
    for (;;)
        pause();
    return argument;
}

static void *exits(void *argument)
{
    CHECK(depth_of(levels) == levels);
    pthread_exit(argument);
}

int main(int count, char **arguments)
{
    enum { MANY = 100, TURNS = 200 };
    static pthread_t many[MANY];
    pthread_attr_t attr;
    pthread_t thread;
    void *result;
    int said;
    levels = count > 1 ? atoi(arguments[1]) : 1;
    CHECK(sem_init(&is_done, 0, 0) == 0 && sem_init(&may_go, 0, 0) == 0);
    CHECK(pthread_attr_init(&attr) == 0);

    has_neighbour = count > 2 && arguments[2][0] == 'n';
    if (count > 2) {
        CHECK(pthread_create(&thread, NULL, is_deep, &levels) == 0);
        joined(thread);
        return 0;
    }

    void *(*const ways[])(void *) = { is_deep, wants_no_signals, hands_on_what_it_blocks,
        has_a_child, exits, uses_what_it_has };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int times = 0; times < 3; times++) {
            CHECK(pthread_create(&thread, NULL, ways[i], &levels) == 0);
            joined(thread);
        }

    CHECK(pthread_create(&thread, NULL, is_cancelled, &levels) == 0);
    CHECK(sem_wait(&is_done) == 0 && pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);

#ifndef IS_WATCHED
    as_in_c();
#endif

    CHECK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    CHECK(pthread_create(&thread, &attr, ends_alone, &levels) == 0 && sem_wait(&is_done) == 0);
    CHECK(pthread_create(&thread, NULL, detaches_itself, &levels) == 0);
    CHECK(sem_wait(&is_done) == 0);
    CHECK(pthread_create(&thread, NULL, ends_alone, &levels) == 0);
    CHECK(pthread_detach(thread) == 0 && sem_wait(&is_done) == 0);

    CHECK(pthread_create(&thread, NULL, is_deep, &levels) == 0);
    while ((said = pthread_tryjoin_np(thread, &result)) == EBUSY)
        sched_yield();
    CHECK(said == 0 && result == &levels);

    /* All at once, and one after the other: what they had is had again. */
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_create(&many[i], NULL, is_one_of_many, &levels) == 0);
    for (int i = 0; i < MANY; i++)
        CHECK(sem_post(&may_go) == 0);
    for (int i = 0; i < MANY; i++)
        joined(many[i]);
    for (int i = 0; i < TURNS; i++)
        if (i % 2) {
            CHECK(pthread_create(&thread, &attr, ends_alone, &levels) == 0);
            CHECK(sem_wait(&is_done) == 0);
        } else {
            CHECK(pthread_create(&thread, NULL, is_deep, &levels) == 0);
            joined(thread);
        }
    puts("well");
    return 0;
}
