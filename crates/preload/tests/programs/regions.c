/*
 * Where threads are while one of them is critical, as the kernel has it and as the program is
 * told. Called with the name of the means; with "bound" behind it where threads do not return,
 * with "leave" where they are out of the fast region while they block, and with "limit" where
 * real time is permitted and no privilege.
 * Nothing here depends on how long anything takes.
 */
#include <milieu/threads.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>

#include "check.h"

static const char *rung;

struct thread {
    pthread_t thread;
    pid_t number;
    pthread_barrier_t *begun, *over;
    sigset_t signals;
    /* Which it reads and closes. */
    int file;
};

static pid_t number(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* As the kernel has it. */
static int policy_of(pid_t thread)
{
    return (int)syscall(SYS_sched_getscheduler, thread);
}

static int nice_of(pid_t thread)
{
    return 20 - (int)syscall(SYS_getpriority, PRIO_PROCESS, thread);
}

static int is_grouped(pid_t thread)
{
    char path[64], line[512];
    int found = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/cgroup", thread);
    FILE *file = fopen(path, "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        found |= strstr(line, "/milieu-lazy-") != NULL;
    fclose(file);
    return found;
}

/* Whether the kernel has a thread in the lazy region; on the rung of real time nobody is. */
static int is_lazy(pid_t thread)
{
    if (strcmp(rung, "idle") == 0)
        return policy_of(thread) == SCHED_IDLE;
    if (strcmp(rung, "nice") == 0)
        return nice_of(thread) == 19;
    if (strcmp(rung, "cgroup") == 0)
        return is_grouped(thread);
    return 0;
}

static int can_be_lazy(void)
{
    return strcmp(rung, "realtime") != 0;
}

static void *waits(void *argument)
{
    struct thread *own = argument;
    char byte;
    own->number = number();
    CHECK(read(own->file, &byte, 1) == 1 && close(own->file) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &own->signals) == 0);
    pthread_barrier_wait(own->begun);
    pthread_barrier_wait(own->over);
    return NULL;
}

static pthread_barrier_t begun, over;

static void begins(struct thread *thread, const char *role, int is_critical)
{
    pthread_attr_t attr;
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    CHECK(pthread_attributes_set_role(&attributes, role) == 0);
    attributes.is_time_critical = is_critical;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    thread->begun = &begun;
    thread->over = &over;
    /* Files are the process's, whoever creates the thread. */
    CHECK((thread->file = open("/proc/self/stat", O_RDONLY)) >= 0);
    CHECK(pthread_create(&thread->thread, &attr, waits, thread) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    pthread_barrier_wait(&begun);
    CHECK(fcntl(thread->file, F_GETFD) == -1 && errno == EBADF);
}

/* As the table has it. */
static int region_of(pthread_t thread)
{
    pthread_information_t information = PTHREAD_INFORMATION_INIT;
    CHECK(pthread_get_information_np(thread, &information) == 0);
    CHECK(information.policy == SCHED_OTHER);
    return information.region;
}

static void *is_told_its_own(void *argument)
{
    struct sched_param param;
    int policy;
    (void)argument;
    CHECK(is_lazy(number()) == can_be_lazy());
    CHECK(getpriority(PRIO_PROCESS, 0) == 0 && sched_getscheduler(0) == SCHED_OTHER);
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0 && policy == SCHED_OTHER);
    CHECK(nice(4) == 4 && getpriority(PRIO_PROCESS, 0) == 4);
    CHECK(is_lazy(number()) == can_be_lazy());
    /* Its children are what it would be. */
    pid_t child = fork();
    if (child == 0) {
        CHECK(!is_lazy(getpid()) && nice_of(getpid()) == 4);
        CHECK(policy_of(getpid()) == SCHED_OTHER);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&over);
    CHECK(!is_lazy(number()) && nice_of(number()) == 4 && policy_of(number()) == SCHED_OTHER);
    return NULL;
}

static void threads_go_and_return(void)
{
    struct thread lazy, critical;
    pthread_t told;
    struct sched_param normal = { .sched_priority = 0 };
    CHECK(pthread_barrier_init(&begun, NULL, 2) == 0);
    CHECK(pthread_barrier_init(&over, NULL, 4) == 0);
    begins(&lazy, "logger", 0);
    CHECK(policy_of(lazy.number) == SCHED_OTHER && !is_lazy(lazy.number));
    begins(&critical, "probe", 1);
    CHECK(is_lazy(lazy.number) == can_be_lazy());
    CHECK(is_lazy(number()) == can_be_lazy());
    CHECK(!is_lazy(critical.number));
    CHECK(region_of(critical.thread) == PTHREAD_REGION_FAST);
    CHECK(region_of(lazy.thread) == PTHREAD_REGION_LAZY);
    CHECK(policy_of(critical.number) == SCHED_OTHER || !can_be_lazy());
    CHECK((policy_of(critical.number) & 7) == SCHED_RR || can_be_lazy());
    CHECK(pthread_create(&told, NULL, is_told_its_own, NULL) == 0);
    pthread_barrier_wait(&begun);

    CHECK(pthread_setschedparam(critical.thread, SCHED_OTHER, &normal) == 0);
    CHECK(!is_lazy(lazy.number) && policy_of(lazy.number) == SCHED_OTHER);
    CHECK(region_of(critical.thread) == PTHREAD_REGION_OWN);
    CHECK(region_of(lazy.thread) == PTHREAD_REGION_OWN);
    CHECK(!is_lazy(number()) && nice_of(number()) == 0);
    CHECK((policy_of(critical.number) & 7) == SCHED_OTHER);
    pthread_barrier_wait(&over);
    CHECK(pthread_join(told, NULL) == 0);
    CHECK(pthread_join(lazy.thread, NULL) == 0);
    CHECK(pthread_join(critical.thread, NULL) == 0);
}

/* What is asked for a group of processes all threads have by themselves, critical ones too. */
static void threads_are_told_as_a_group(void)
{
    struct thread critical;
    struct sched_param normal = { 0 };
    CHECK(pthread_barrier_init(&begun, NULL, 2) == 0);
    CHECK(pthread_barrier_init(&over, NULL, 2) == 0);
    begins(&critical, "probe", 1);
    CHECK(setpgid(0, 0) == 0 && getpriority(PRIO_PROCESS, 0) == 0);
    CHECK(getpriority(PRIO_PROCESS, critical.number) == 0);
    CHECK(getpriority(PRIO_PGRP, 0) == 0 && getpriority(PRIO_PGRP, (id_t)getpgrp()) == 0);
    /* What it has as a critical one, ahead of others where that is permitted, is not the program's. */
    CHECK(pthread_setschedprio(critical.thread, -10) == 0 && getpriority(PRIO_PGRP, 0) == 0);
    CHECK(pthread_setschedprio(critical.thread, 0) == 0);
    CHECK(getpriority(PRIO_USER, 0) <= 0 && getpriority(PRIO_USER, getuid()) <= 0);
    CHECK(getpriority(7, 0) == -1 && errno == EINVAL);
    /* Threads of the library's own do not count. */
    CHECK(setpriority(PRIO_PROCESS, 0, 3) == 0);
    CHECK(setpriority(PRIO_PROCESS, (id_t)critical.number, 3) == 0);
    CHECK(getpriority(PRIO_PGRP, 0) == 3);
    if (geteuid() == 0) {
        CHECK(setpriority(PRIO_PROCESS, (id_t)critical.number, 0) == 0);
        CHECK(getpriority(PRIO_PGRP, 0) == 0);
    }
    CHECK(setpriority(PRIO_PGRP, 0, 5) == 0 && getpriority(PRIO_PGRP, 0) == 5);
    CHECK(getpriority(PRIO_PROCESS, 0) == 5 && is_lazy(number()) == can_be_lazy());
    CHECK(getpriority(PRIO_PROCESS, critical.number) == 5);
    CHECK(region_of(critical.thread) == PTHREAD_REGION_FAST && !is_lazy(critical.number));
    CHECK((policy_of(critical.number) & 7) == SCHED_RR || can_be_lazy());
    CHECK(pthread_setschedparam(critical.thread, SCHED_OTHER, &normal) == 0);
    CHECK(nice_of(critical.number) == 5 && policy_of(critical.number) == SCHED_OTHER);
    pthread_barrier_wait(&over);
    CHECK(pthread_join(critical.thread, NULL) == 0);
    CHECK(!is_lazy(number()) && nice_of(number()) == 5 && policy_of(number()) == SCHED_OTHER);
    CHECK(setpriority(PRIO_PGRP, 0, 7) == 0 && getpriority(PRIO_PROCESS, 0) == 7);
}

/* Who is bound to be lazy waits without a critical thread, until its attributes change. */
static void threads_are_lazy_by_themselves(void)
{
    struct thread lazy;
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    CHECK(pthread_barrier_init(&begun, NULL, 2) == 0);
    CHECK(pthread_barrier_init(&over, NULL, 2) == 0);
    begins(&lazy, "updates", 0);
    CHECK(!is_lazy(lazy.number));
    attributes.is_lazy = 1;
    CHECK(pthread_set_attributes(lazy.thread, &attributes) == 0);
    /* With real time it is idle, too. */
    CHECK(is_lazy(lazy.number) || policy_of(lazy.number) == SCHED_IDLE);
    attributes.is_time_critical = 1;
    CHECK(pthread_set_attributes(lazy.thread, &attributes) == EINVAL);
    attributes.is_time_critical = attributes.is_lazy = 0;
    CHECK(pthread_set_attributes(lazy.thread, &attributes) == 0);
    CHECK(!is_lazy(lazy.number) && policy_of(lazy.number) == SCHED_OTHER);
    pthread_barrier_wait(&over);
    CHECK(pthread_join(lazy.thread, NULL) == 0);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *wants_it(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&begun);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    return NULL;
}

/* Who has what a critical thread waits for is not lazy, and is again afterwards. */
static void owners_are_boosted(void)
{
    struct thread critical;
    pthread_t waiter;
    pthread_attr_t attr;
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    CHECK(pthread_barrier_init(&begun, NULL, 2) == 0);
    CHECK(pthread_barrier_init(&over, NULL, 2) == 0);
    begins(&critical, "probe", 1);
    CHECK(is_lazy(number()) == can_be_lazy());
    CHECK(pthread_mutex_lock(&mutex) == 0);
    attributes.is_time_critical = 1;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    CHECK(pthread_create(&waiter, &attr, wants_it, NULL) == 0);
    pthread_barrier_wait(&begun);
    /* Until it waits. */
    while (can_be_lazy() ? is_lazy(number()) : (policy_of(number()) & 7) != SCHED_RR)
        sched_yield();
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(pthread_join(waiter, NULL) == 0);
    CHECK(is_lazy(number()) == can_be_lazy());
    CHECK((policy_of(number()) & 7) != SCHED_RR);
    pthread_barrier_wait(&over);
    CHECK(pthread_join(critical.thread, NULL) == 0);
    CHECK(!is_lazy(number()));
}

/* Where there is no way back, who begins while a critical thread is there is lazy for ever. */
static void *begins_others(void *argument)
{
    struct thread *critical = argument;
    sigset_t signals, here;
    cpu_set_t processors;
    char name[16];
    CHECK(is_lazy(number()));
    /* What a thread has of who creates it, whoever does that here. */
    CHECK(sigemptyset(&signals) == 0 && sigaddset(&signals, SIGUSR1) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &signals, NULL) == 0);
    CHECK(pthread_setname_np(pthread_self(), "begins-others") == 0);
    CHECK(sched_getaffinity(0, sizeof processors, &processors) == 0);
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &processors))
        last--;
    CPU_ZERO(&processors);
    CPU_SET(last, &processors);
    CHECK(sched_setaffinity(0, sizeof processors, &processors) == 0);
    begins(critical, "display", 1);
    CHECK(!is_lazy(critical->number) && policy_of(critical->number) == SCHED_OTHER);
    CHECK(nice_of(critical->number) == 0);
    CHECK(sched_getaffinity(critical->number, sizeof processors, &processors) == 0);
    CHECK(CPU_COUNT(&processors) == 1 && CPU_ISSET(last, &processors));
    CHECK(pthread_getname_np(critical->thread, name, sizeof name) == 0);
    CHECK(strcmp(name, "begins-others") == 0);
    CHECK(sigismember(&critical->signals, SIGUSR1) == 1);
    CHECK(sigismember(&critical->signals, SIGUSR2) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &here) == 0 && sigismember(&here, SIGUSR1) == 1);
    return NULL;
}

static void threads_are_bound(void)
{
    struct thread critical, lazy, child, other;
    pthread_t beginner;
    CHECK(pthread_barrier_init(&begun, NULL, 2) == 0);
    CHECK(pthread_barrier_init(&over, NULL, 5) == 0);
    begins(&critical, "probe", 1);
    begins(&lazy, "logger", 0);
    CHECK(is_lazy(lazy.number) && !is_lazy(critical.number) && !is_lazy(number()));
    begins(&child, "logger", 0);
    CHECK(is_lazy(child.number));
    /* But not who is begun by one of them and is critical. */
    CHECK(pthread_create(&beginner, NULL, begins_others, &other) == 0);
    CHECK(pthread_join(beginner, NULL) == 0);
    CHECK(!is_lazy(other.number));
    pthread_barrier_wait(&over);
    CHECK(pthread_join(other.thread, NULL) == 0);
    CHECK(pthread_join(lazy.thread, NULL) == 0);
    CHECK(pthread_join(child.thread, NULL) == 0);
    CHECK(pthread_join(critical.thread, NULL) == 0);
}

static int ends[2];

static void writes(void)
{
    CHECK(write(ends[1], "", 1) == 1);
}

static void *reads(void *argument)
{
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1);
    return argument;
}

static void waits_to_read(void)
{
    reads(NULL);
}

/* As a program does that is compiled with _FORTIFY_SOURCE. */
ssize_t __read_chk(int file, void *into, size_t bytes, size_t room);

static void waits_to_read_in_bounds(void)
{
    char byte;
    CHECK(__read_chk(ends[0], &byte, 1, 1) == 1);
}

static void waits_to_read_parts(void)
{
    char byte;
    struct iovec part = { &byte, 1 };
    CHECK(readv(ends[0], &part, 1) == 1);
}

static void waits_for_a_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, reads, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void waits_for_a_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        reads(NULL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void waits_for_others(void)
{
    pthread_barrier_wait(&begun);
}

static mtx_t lock;
static cnd_t changes;
static int is_changed;

static void waits_for_a_change(void)
{
    CHECK(mtx_lock(&lock) == thrd_success);
    while (!is_changed)
        CHECK(cnd_wait(&changes, &lock) == thrd_success);
    CHECK(mtx_unlock(&lock) == thrd_success);
}

static void change(void)
{
    CHECK(mtx_lock(&lock) == thrd_success);
    is_changed = 1;
    CHECK(cnd_signal(&changes) == thrd_success);
    CHECK(mtx_unlock(&lock) == thrd_success);
}

static int stage;

static void *blocks(void *argument)
{
    void (*const *waits)(void) = argument;
    __atomic_store_n(&stage, 1, __ATOMIC_RELEASE);
    (*waits)();
    __atomic_store_n(&stage, 2, __ATOMIC_RELEASE);
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != 3)
        sched_yield();
    return NULL;
}

/* As an option, a critical thread is out of the fast region while it blocks. */
static void threads_leave_while_they_block(void)
{
    static const struct {
        void (*waits)(void), (*ends)(void);
    } all[] = {
        { waits_to_read, writes },
        { waits_to_read_in_bounds, writes },
        { waits_to_read_parts, writes },
        { waits_for_a_thread, writes },
        { waits_for_a_child, writes },
        { waits_for_others, waits_for_others },
        { waits_for_a_change, change },
    };
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    attributes.is_time_critical = 1;
    CHECK(pipe(ends) == 0);
    CHECK(pthread_barrier_init(&begun, NULL, 2) == 0);
    CHECK(mtx_init(&lock, mtx_plain) == thrd_success && cnd_init(&changes) == thrd_success);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        __atomic_store_n(&stage, 0, __ATOMIC_RELEASE);
        CHECK(pthread_create(&thread, &attr, blocks, (void *)&all[i].waits) == 0);
        while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == 0 || is_lazy(number()))
            sched_yield();
        all[i].ends();
        while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != 2)
            sched_yield();
        CHECK(is_lazy(number()) == can_be_lazy());
        __atomic_store_n(&stage, 3, __ATOMIC_RELEASE);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(!is_lazy(number()));
    }
}

int main(int count, char **arguments)
{
    CHECK(count > 1 && milieu_threads_are_served());
    rung = arguments[1];
    if (count > 2 && strcmp(arguments[2], "leave") == 0) {
        threads_leave_while_they_block();
    } else if (count > 2 && strcmp(arguments[2], "bound") == 0) {
        threads_are_bound();
    } else {
        /* Nobody comes back from there where a limit permits real time alone. */
        if (count == 2)
            threads_are_lazy_by_themselves();
        threads_go_and_return();
        owners_are_boosted();
        /* Nor can such a program take it back. */
        if (count == 2)
            threads_are_told_as_a_group();
    }
    puts("done");
    return 0;
}
