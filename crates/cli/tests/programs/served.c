/*
 * What a program asks and has while a mediator of the whole device has put its threads
 * elsewhere, as the kernel has it and as the program is told.
 *
 *     own RUNG OTHER     what it wants; OTHER is this program, of a name that nobody moves
 *     boosts RUNG        a lock that a critical thread waits for
 *     spins THREADS      critical threads that never wait
 *     waits              a critical thread and one that is not, until the input ends
 *     begins NICE        whether it began as usual, with this nice value
 *
 * It waits until things are so; whoever starts it ends it if they never are.
 */
#include <milieu/threads.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#define UNTIL(it) \
    do { \
        int tries_ = 0; \
        while (!(it)) { \
            if (++tries_ == 12000) \
                fprintf(stderr, "%s:%d: never: %s\n", __FILE__, __LINE__, #it), _exit(98); \
            usleep(10000); \
        } \
    } while (0)

static const char *rung;

static pid_t number(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* As the kernel has it. */
static int policy_of(pid_t thread)
{
    return (int)syscall(SYS_sched_getscheduler, thread) & 7;
}

static int nice_of(pid_t thread)
{
    return 20 - (int)syscall(SYS_getpriority, PRIO_PROCESS, thread);
}

/* Whether the kernel has a thread in the lazy region; in real time nobody is. */
static int is_lazy(pid_t thread)
{
    if (strcmp(rung, "idle") == 0)
        return policy_of(thread) == SCHED_IDLE;
    if (strcmp(rung, "nice") == 0)
        return nice_of(thread) == 19;
    return 0;
}

static int can_be_lazy(void)
{
    return strcmp(rung, "realtime") != 0;
}

static int is_urgent(pid_t thread)
{
    return can_be_lazy() ? !is_lazy(thread) : policy_of(thread) == SCHED_RR;
}

static pthread_barrier_t begun, over;

static void begins(pthread_t *thread, int is_critical, void *(*start)(void *), void *argument)
{
    pthread_attr_t attr;
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    attributes.is_time_critical = is_critical;
    attributes.priority = is_critical ? -5 : 0;
    CHECK(pthread_attributes_set_role(&attributes, is_critical ? "probe" : "logger") == 0);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    CHECK(pthread_create(thread, &attr, start, argument) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

/* This program, of another name and with nothing before it, began as usual. */
static char *const nothing[] = { NULL };

static void has_begun(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Whoever begins it is lazy, and wants the nice value 4. */
static void others_begin_as_usual(char *other)
{
    char *const words[] = { other, "begins", "4", NULL };
    pid_t child;
    UNTIL(is_lazy(number()) == can_be_lazy());
    CHECK(posix_spawn(&child, other, NULL, NULL, words, nothing) == 0);
    has_begun(child);
    UNTIL(is_lazy(number()) == can_be_lazy());
    child = fork();
    if (child == 0) {
        /* It is lazy as its parent is, as soon as it is found, and has the same of its own. */
        CHECK(sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) == 4);
        UNTIL(is_lazy(number()) == can_be_lazy());
        CHECK(sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) == 4);
        execve(other, words, nothing);
        _exit(97);
    }
    has_begun(child);
    UNTIL(is_lazy(number()) == can_be_lazy());
    child = vfork();
    if (child == 0) {
        execve(other, words, nothing);
        _exit(97);
    }
    has_begun(child);
}

static void *is_critical(void *argument)
{
    struct sched_param param;
    int policy;
    (void)argument;
    UNTIL(is_urgent(number()));
    CHECK(getpriority(PRIO_PROCESS, 0) == 0 && sched_getscheduler(0) == SCHED_OTHER);
    CHECK(nice(2) == 2 && getpriority(PRIO_PROCESS, 0) == 2);
    UNTIL(is_urgent(number()));
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0 && policy == SCHED_TEK);
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&over);
    return NULL;
}

static void it_is_told_its_own(char *other)
{
    pthread_t critical, self = pthread_self();
    struct sched_param param = { .sched_priority = 0 };
    int policy;
    CHECK(pthread_barrier_init(&begun, NULL, 2) == 0);
    CHECK(pthread_barrier_init(&over, NULL, 2) == 0);
    begins(&critical, 1, is_critical, NULL);
    pthread_barrier_wait(&begun);
    UNTIL(is_lazy(number()) == can_be_lazy());
    CHECK(getpriority(PRIO_PROCESS, 0) == 0 && sched_getscheduler(0) == SCHED_OTHER);
    CHECK(pthread_getschedparam(self, &policy, &param) == 0 && policy == SCHED_OTHER);
    CHECK(sched_getparam(0, &param) == 0 && param.sched_priority == 0);
    CHECK(nice(3) == 3 && getpriority(PRIO_PROCESS, 0) == 3);
    UNTIL(is_lazy(number()) == can_be_lazy());
    CHECK(setpriority(PRIO_PROCESS, 0, 4) == 0 && getpriority(PRIO_PROCESS, 0) == 4);
    UNTIL(is_lazy(number()) == can_be_lazy());
    others_begin_as_usual(other);
    UNTIL(is_lazy(number()) == can_be_lazy());
    /* It is the kernel that says what may be. */
    CHECK(sched_setscheduler(0, 77, &param) == -1 && errno == EINVAL);
    CHECK(sched_setscheduler(0, SCHED_BATCH, &param) == 0);
    CHECK(sched_getscheduler(0) == SCHED_BATCH && getpriority(PRIO_PROCESS, 0) == 4);
    UNTIL(is_lazy(number()) == can_be_lazy());
    /* In real time it is left alone. */
    param.sched_priority = 1;
    if (sched_setscheduler(0, SCHED_FIFO, &param) == 0) {
        usleep(700000);
        CHECK(policy_of(number()) == SCHED_FIFO && sched_getscheduler(0) == SCHED_FIFO);
        param.sched_priority = 0;
        CHECK(sched_setscheduler(0, SCHED_BATCH, &param) == 0);
        UNTIL(is_lazy(number()) == can_be_lazy());
    }
    CHECK(sched_getscheduler(0) == SCHED_BATCH);
    pthread_barrier_wait(&over);
    CHECK(pthread_join(critical, NULL) == 0);
    UNTIL(!is_lazy(number()));
    CHECK(policy_of(number()) == SCHED_BATCH && nice_of(number()) == 4);
    CHECK(sched_getscheduler(0) == SCHED_BATCH && getpriority(PRIO_PROCESS, 0) == 4);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *wants_it(void *argument)
{
    int *const has = argument;
    CHECK(pthread_mutex_lock(&mutex) == 0);
    *has = 1;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    pthread_barrier_wait(&over);
    return NULL;
}

/* Who has what a critical thread waits for is not lazy, and is again afterwards. */
static void owners_are_boosted(void)
{
    pthread_t critical;
    int has = 0;
    CHECK(pthread_barrier_init(&over, NULL, 2) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(!is_urgent(number()) || can_be_lazy());
    begins(&critical, 1, wants_it, &has);
    /* In between it may have been lazy. Others are, as long as there is a critical thread. */
    for (int round = 0; round < 10; round++) {
        UNTIL(is_urgent(number()));
        usleep(50000);
    }
    CHECK(is_urgent(number()) && !has);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    UNTIL(!is_urgent(number()));
    CHECK(is_lazy(number()) == can_be_lazy());
    pthread_barrier_wait(&over);
    CHECK(pthread_join(critical, NULL) == 0 && has);
    UNTIL(!is_lazy(number()) && policy_of(number()) == SCHED_OTHER);
}

static void *spins(void *argument)
{
    volatile long count = 0;
    (void)argument;
    for (;;)
        count++;
    return NULL;
}

static void *waits(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    const char *more = count > 2 ? arguments[2] : "";
    pthread_t thread;
    if (strcmp(what, "begins") == 0) {
        UNTIL(policy_of(0) == SCHED_OTHER && nice_of(0) == atoi(more));
        return 0;
    }
    /* Nobody waits for ever for one that hangs, or whose test was ended. */
    alarm(300);
    CHECK(milieu_threads_are_served());
    if (strcmp(what, "own") == 0) {
        CHECK(count > 3);
        rung = more;
        it_is_told_its_own(arguments[3]);
    } else if (strcmp(what, "boosts") == 0) {
        rung = more;
        owners_are_boosted();
    } else if (strcmp(what, "spins") == 0) {
        for (int left = atoi(more); left > 0; left--)
            begins(&thread, 1, spins, NULL);
        waits(NULL);
    } else {
        char byte;
        begins(&thread, 0, waits, NULL);
        begins(&thread, 1, waits, NULL);
        CHECK(read(0, &byte, 1) == 0);
    }
    puts("done");
    return 0;
}
