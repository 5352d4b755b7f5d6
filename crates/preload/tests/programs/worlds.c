/*
 * What threads do, in C: each case prints what it saw, and nothing that another run could see
 * differently. The same program runs with and without Milieu, and has to print the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "check.h"

static const char *self;
static char **given;

static void say(const char *text)
{
    CHECK(dprintf(1, "%s\n", text) > 0);
}

/* ------------------------------------------------------------ how threads end */

static void *twice(void *argument)
{
    return (void *)((intptr_t)argument * 2);
}

static void joined(void)
{
    intptr_t sum = 0;
    for (intptr_t i = 0; i < 50; ++i) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, twice, (void *)i) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        sum += (intptr_t)result;
    }
    printf("sum %ld, errno %d\n", (long)sum, errno);
}

static void *errno_is_zero(void *argument)
{
    (void)argument;
    return (void *)(intptr_t)errno;
}

static void errno_begins_with_zero(void)
{
    pthread_t thread;
    void *result;
    errno = 4711;
    CHECK(pthread_create(&thread, NULL, errno_is_zero, NULL) == 0);
    printf("creator's %d\n", errno);
    CHECK(pthread_join(thread, &result) == 0);
    printf("thread's %ld\n", (long)(intptr_t)result);
}

static void cleanup(void *text)
{
    say(text);
}

static void *exits_deeply(void *argument)
{
    pthread_cleanup_push(cleanup, "outer clean-up");
    pthread_cleanup_push(cleanup, "inner clean-up");
    pthread_exit(argument);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void exits(void)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, exits_deeply, "result") == 0);
    CHECK(pthread_join(thread, &result) == 0);
    say(result);
}

static pthread_barrier_t both;

static void *is_cancelled(void *argument)
{
    pthread_cleanup_push(cleanup, "clean-up");
    if (argument)
        CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    pthread_barrier_wait(&both);
    for (;;)
        if (!argument)
            pause();
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled(void)
{
    for (int asynchronous = 0; asynchronous < 2; ++asynchronous) {
        pthread_t thread;
        void *result;
        CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
        CHECK(pthread_create(&thread, NULL, is_cancelled, asynchronous ? "a" : NULL) == 0);
        pthread_barrier_wait(&both);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        printf("cancelled: %d\n", result == PTHREAD_CANCELED);
        fflush(stdout);
    }
}

static void *is_cancelled_at_once(void *argument)
{
    (void)argument;
    pthread_testcancel();
    for (;;)
        pause();
    return NULL;
}

static void cancelled_at_once(void)
{
    int count = 0;
    for (int i = 0; i < 50; ++i) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, is_cancelled_at_once, NULL) == 0);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        count += result == PTHREAD_CANCELED;
    }
    printf("cancelled %d\n", count);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ended;

static void *is_detached(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&mutex);
    ++ended;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void detached(void)
{
    pthread_attr_t attr;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
    for (int i = 0; i < 40; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, i % 2 ? &attr : NULL, is_detached, NULL) == 0);
        if (i % 2 == 0)
            CHECK(pthread_detach(thread) == 0);
    }
    pthread_mutex_lock(&mutex);
    while (ended < 40)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_attr_destroy(&attr) == 0);
    printf("ended %d\n", ended);
}

static pthread_key_t keys[2];

static void destroyed(void *value)
{
    say(value);
    /* Once more, as programs may. */
    if (strcmp(value, "first") == 0)
        pthread_setspecific(keys[1], "second");
}

static void *has_values(void *argument)
{
    pthread_setspecific(keys[0], "first");
    return argument;
}

static void keys_are_destroyed(void)
{
    pthread_t thread;
    CHECK(pthread_key_create(&keys[0], destroyed) == 0);
    CHECK(pthread_key_create(&keys[1], destroyed) == 0);
    CHECK(pthread_create(&thread, NULL, has_values, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *outlives_main(void *argument)
{
    CHECK(pthread_join(*(pthread_t *)argument, NULL) == 0);
    say("main has ended");
    return NULL;
}

static void at_exit(void)
{
    say("at exit");
}

static void main_ends_first(void)
{
    static pthread_t own;
    pthread_t thread;
    own = pthread_self();
    CHECK(atexit(at_exit) == 0);
    CHECK(pthread_create(&thread, NULL, outlives_main, &own) == 0);
    pthread_exit(NULL);
}

static void *waits_for_ever(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&both);
    for (;;)
        pause();
    return NULL;
}

static void process_ends_first(void)
{
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    for (int i = 0; i < 5; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, waits_for_ever, NULL) == 0);
        pthread_barrier_wait(&both);
    }
    CHECK(atexit(at_exit) == 0);
    exit(7);
}

static int in_c11(void *argument)
{
    if (argument)
        thrd_exit(-5);
    return -4;
}

static void c11(void)
{
    mtx_t plain;
    CHECK(mtx_init(&plain, mtx_recursive) == thrd_success);
    CHECK(mtx_lock(&plain) == thrd_success && mtx_lock(&plain) == thrd_success);
    for (int i = 0; i < 2; ++i) {
        thrd_t thread;
        int result;
        CHECK(thrd_create(&thread, in_c11, i ? "" : NULL) == thrd_success);
        CHECK(thrd_join(thread, &result) == thrd_success);
        printf("result %d\n", result);
    }
    mtx_unlock(&plain);
    mtx_unlock(&plain);
    mtx_destroy(&plain);
}

#include "worlds_stacks.h"

/* ------------------------------------------------------------ signals */

static sigjmp_buf back;

static void returns(int signal, siginfo_t *info, void *context)
{
    (void)context;
    siglongjmp(back, signal == SIGSEGV && info->si_addr == (void *)64 ? 1 : 2);
}

static void *faults(void *argument)
{
    volatile char *nowhere = (char *)64;
    int said = sigsetjmp(back, 1);
    if (said == 0)
        *nowhere = 1;
    return (void *)(intptr_t)(said + (argument != NULL));
}

static volatile sig_atomic_t signals;

static void counts_signal(int signal)
{
    (void)signal;
    ++signals;
}

static void handlers(void)
{
    struct sigaction action, old;
    pthread_t thread;
    void *result;
    memset(&action, 0, sizeof action);
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0);
    printf("default: %d\n", old.sa_handler == SIG_DFL && old.sa_flags == 0);
    action.sa_sigaction = returns;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0);
    printf("as set: %d\n", old.sa_sigaction == returns);
    CHECK(pthread_create(&thread, NULL, faults, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    printf("in a thread: %ld\n", (long)(intptr_t)result);
    printf("in main: %ld\n", (long)(intptr_t)faults(NULL));
    CHECK((uintptr_t)signal(SIGSEGV, SIG_DFL) == (uintptr_t)returns);
    CHECK(signal(SIGXCPU, SIG_IGN) == SIG_DFL);
    CHECK(signal(SIGXCPU, SIG_DFL) == SIG_IGN);
    /* One that the program sends is the program's. */
    CHECK(signal(SIGXCPU, counts_signal) == SIG_DFL);
    CHECK(raise(SIGXCPU) == 0 && kill(getpid(), SIGXCPU) == 0);
    while (signals < 2)
        sched_yield();
    printf("signals %d\n", (int)signals);
    CHECK(signal(SIGXCPU, SIG_DFL) == counts_signal);
    CHECK(signal(4711, SIG_DFL) == SIG_ERR);
    CHECK(sigaction(4711, &action, NULL) == -1 && errno == EINVAL);
}

static void *has_alternate(void *argument)
{
    static char memory[65536];
    stack_t stack = { .ss_sp = memory, .ss_size = sizeof memory }, old;
    (void)argument;
    CHECK(sigaltstack(&stack, NULL) == 0);
    CHECK(sigaltstack(NULL, &old) == 0);
    return old.ss_sp == memory ? "its own" : "another";
}

static void alternate_stacks(void)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, has_alternate, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    say(result);
}

static void overflow(void)
{
    struct rlimit none = { 0, 0 };
    pthread_t thread;
    CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
    CHECK(pthread_create(&thread, NULL, is_deep, (void *)1000000) == 0);
    pthread_join(thread, NULL);
    say("not reached");
}

/* ------------------------------------------------------------ processes */

#include "worlds_processes.h"

/* ------------------------------------------------------------ priorities, names, locks */

static void priorities(void)
{
    struct sched_param param;
    errno = 0;
    CHECK(sched_getparam(0, &param) == 0);
    printf("nice %d, policy %d, priority %d, errno %d\n", getpriority(PRIO_PROCESS, 0),
        sched_getscheduler(0), param.sched_priority, errno);
    fflush(stdout);
}

/* What glibc says of a policy is what it was when it was asked, or told, for the first time. */
static void policy(void)
{
    struct sched_param param;
    int policy;
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0);
    printf("policy %d, priority %d\n", policy, param.sched_priority);
}

static void *changes_priorities(void *argument)
{
    struct sched_param zero = { 0 }, one = { 1 };
    (void)argument;
    CHECK(nice(3) == 3);
    priorities();
    CHECK(setpriority(PRIO_PROCESS, 0, 5) == 0);
    CHECK(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 6) == 0);
    priorities();
    CHECK(sched_setscheduler(0, SCHED_BATCH, &zero) == 0);
    priorities();
    policy();
    CHECK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &zero) == 0);
    policy();
    priorities();
    CHECK(sched_setscheduler(0, SCHED_BATCH, &one) == -1 && errno == EINVAL);
    CHECK(sched_setscheduler(0, 4711, &zero) == -1 && errno == EINVAL);
    CHECK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &one) == EINVAL);
    CHECK(pthread_setschedparam(pthread_self(), 4711, &zero) == EINVAL);
    CHECK(pthread_setschedprio(pthread_self(), 0) == 0);
    CHECK(sched_setparam(0, &zero) == 0);
    CHECK(getpriority(PRIO_PROCESS, 0x7ffffff) == -1 && errno == ESRCH);
    return NULL;
}

static void *inherits(void *argument)
{
    (void)argument;
    priorities();
    policy();
    return NULL;
}

static void *hands_on(void *argument)
{
    pthread_t thread;
    (void)argument;
    CHECK(nice(2) == 2);
    CHECK(pthread_create(&thread, NULL, inherits, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return NULL;
}

/* Where threads differ in what their children inherit, each has what its own creator has. */
static void *has_parents_nice(void *argument)
{
    int has = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
    return (void *)(intptr_t)(has != (int)(intptr_t)argument);
}

/* How many children have another nice value. */
static void *begins_often(intptr_t expected)
{
    intptr_t others = 0;
    for (int i = 0; i < 200; ++i) {
        pthread_t thread;
        void *is_other;
        CHECK(pthread_create(&thread, NULL, has_parents_nice, (void *)expected) == 0);
        CHECK(pthread_join(thread, &is_other) == 0);
        others += (intptr_t)is_other;
    }
    return (void *)others;
}

static void *hands_on_often(void *argument)
{
    CHECK(nice((int)(intptr_t)argument) == (int)(intptr_t)argument);
    return begins_often((intptr_t)argument);
}

/* The kernel gives its children no nice value below 0; only the privileged have one. */
static void *hands_nothing_on(void *argument)
{
    struct sched_param zero = { 0 };
    (void)argument;
    errno = 0;
    if (nice(-4) == -1 && errno != 0)
        return NULL;
    CHECK(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &zero) == 0);
    return begins_often(0);
}

static void parents(void)
{
    pthread_t threads[5];
    for (intptr_t i = 0; i < 4; ++i)
        CHECK(pthread_create(&threads[i], NULL, hands_on_often, (void *)(i + 1)) == 0);
    CHECK(pthread_create(&threads[4], NULL, hands_nothing_on, NULL) == 0);
    for (int i = 0; i < 5; ++i) {
        void *others;
        CHECK(pthread_join(threads[i], &others) == 0);
        printf("%ld children of %d have another nice value\n", (long)(intptr_t)others, i + 1);
    }
}

static void all_priorities(void)
{
    void *(*const all[])(void *) = { inherits, changes_priorities, hands_on };
    for (int i = 0; i < 3; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, all[i], NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    priorities();
}

static void names(void)
{
    char name[16];
    CHECK(pthread_setname_np(pthread_self(), "a name") == 0);
    CHECK(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    say(name);
    CHECK(prctl(PR_SET_NAME, "a longer name than 15") == 0);
    CHECK(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    say(name);
    CHECK(pthread_setname_np(pthread_self(), "a longer name than 15") == ERANGE);
}

static void *holds(void *kept)
{
    CHECK(pthread_mutex_lock(kept) == 0);
    return NULL;
}

static void locks(void)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t kept;
    pthread_t thread;
    struct timespec past = { 0, 0 };
    static const int kinds[] = {
        PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK
    };
    for (int i = 0; i < 3; ++i) {
        CHECK(pthread_mutexattr_init(&attr) == 0);
        CHECK(pthread_mutexattr_settype(&attr, kinds[i]) == 0);
        CHECK(pthread_mutex_init(&kept, &attr) == 0);
        CHECK(pthread_mutex_lock(&kept) == 0);
        printf("again: %d", i == 0 ? 0 : pthread_mutex_lock(&kept));
        printf(", in time: %d\n", i == 0 ? pthread_mutex_timedlock(&kept, &past) : 0);
    }
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0);
    CHECK(pthread_mutex_init(&kept, &attr) == 0);
    CHECK(pthread_create(&thread, NULL, holds, &kept) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    printf("robust: %d\n", pthread_mutex_lock(&kept) == EOWNERDEAD);
}

static long count;

static void *counts(void *argument)
{
    for (int i = 0; i < 500; ++i) {
        pthread_mutex_lock(&mutex);
        ++count;
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void contended(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; ++i)
        CHECK(pthread_create(&threads[i], NULL, counts, NULL) == 0);
    for (int i = 0; i < 8; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("count %ld\n", count);
}

static void files(void)
{
    int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY);
    printf("files %d %d\n", first, second);
    for (int number = 3; number < 1024; ++number)
        close(number);
    for (int i = 0; i < 900; ++i)
        CHECK(open("/dev/zero", O_RDONLY) == 3 + i);
    joined();
    for (int i = 0; i < 900; ++i)
        CHECK(close(3 + i) == 0);
    forked();
}

/* Threads until there are no more, in little space. */
static int c11_waits_for_ever(void *argument)
{
    (void)argument;
    pause();
    return 0;
}

static void exhausted(void)
{
    struct rlimit limit = { 200 << 20, 200 << 20 };
    pthread_attr_t attr;
    pthread_t thread;
    int error = 0;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 64 << 20) == 0);
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    for (int i = 0; error == 0 && i < 100; ++i) {
        error = pthread_create(&thread, &attr, waits_for_ever, NULL);
        if (error == 0)
            pthread_barrier_wait(&both);
    }
    printf("error %d\n", error == EAGAIN || error == ENOMEM);
    /* As many of the usual size as it takes, by the other name. */
    for (int i = 0; (error = thrd_create(&thread, c11_waits_for_ever, NULL)) == thrd_success; ++i)
        CHECK(i < 100);
    printf("as C has it %d\n", error);
    CHECK(pthread_attr_setstacksize(&attr, 1 << 17) == 0);
    CHECK(pthread_create(&thread, &attr, twice, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    { "joined", joined },
    { "errno", errno_begins_with_zero },
    { "exits", exits },
    { "cancelled", cancelled },
    { "cancelled-at-once", cancelled_at_once },
    { "detached", detached },
    { "keys", keys_are_destroyed },
    { "main-ends-first", main_ends_first },
    { "process-ends-first", process_ends_first },
    { "c11", c11 },
    { "stacks", stacks },
    { "large-storage", large_storage },
    { "light", light },
    { "heavy", heavy },
    { "handlers", handlers },
    { "alternate-stacks", alternate_stacks },
    { "overflow", overflow },
    { "forked", forked },
    { "forked-by-hand", forked_by_hand },
    { "other-programs", other_programs },
    { "another-program", another_program },
    { "listed", listed },
    { "named", listed },
    { "with-variables", listed },
    { "last", shows_arguments },
    { "priorities", priorities },
    { "all-priorities", all_priorities },
    { "parents", parents },
    { "names", names },
    { "locks", locks },
    { "contended", contended },
    { "files", files },
    { "exhausted", exhausted },
    { "limits", limits },
    { "own-limits", own_limits },
};

/* Without an argument the names of the cases. */
int main(int number, char **arguments)
{
    self = arguments[0];
    given = arguments;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        if (number == 1)
            puts(cases[i].name);
        else if (strcmp(arguments[1], cases[i].name) == 0)
            cases[i].run();
    }
    return 0;
}
