/*
 * Milieu: what threads are for. In C and C++, beside <pthread.h>.
 *
 *   pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
 *   pthread_attributes_set_role(&attributes, "gas-detection");
 *   attributes.is_time_critical = 1;
 *   pthread_set_attributes(pthread_self(), &attributes);
 *
 *   struct sched_param param = { .sched_priority = -5 };        // a nice value
 *   pthread_setschedparam(thread, SCHED_TEK, &param);           // time-critical from now on
 *   pthread_setschedparam(thread, SCHED_OTHER, &normal);        // and no more
 *
 *   pthread_attr_setattributes_np(&attr, &attributes);          // before the thread exists
 *   pthread_create(&thread, &attr, probe, NULL);
 *
 *   pthread_find_role_np("gas-detection", threads, 8, &count);  // which threads
 *   pthread_information_t information = PTHREAD_INFORMATION_INIT;
 *   pthread_get_information_np(threads[0], &information);       // and what is known of one
 *
 * While a time-critical thread is there, the others wait for it; their own priorities and
 * policies are kept, and had again afterwards.
 *
 * A program that includes this needs no library. Milieu is there if the program is started by
 * `milieu thread run`, or linked with libmilieu_preload.so; otherwise everything here succeeds
 * without an effect, and the first call that would have had one says so on the standard error
 * output, once. -DMILIEU_THREADS_SILENT keeps it silent; milieu_threads_are_served asks.
 *
 * Functions return 0 or the number of an error, as those of POSIX threads do:
 *
 *   EINVAL  a role, priority or stack that is none; both time-critical and lazy; a place for
 *           information that is none, or does not say its size
 *   ESRCH   no such thread
 *   ENOMEM  there are attributes for too many pthread_attr_t (512)
 *   EAGAIN  a thread has stopped in the middle of writing; try again
 *   ENOSYS  nothing is known of threads, as Milieu is not there, or an older one
 *
 * All of them may be called by any thread, also in signal handlers, and none is a cancellation
 * point. What is said of a pthread_attr_t is kept by its address until pthread_attr_init or
 * pthread_attr_destroy: a copy of it says nothing.
 */
#ifndef MILIEU_THREADS_H
#define MILIEU_THREADS_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The policy of time-critical threads; its priority is a nice value, from -20 (first) to 19. */
#define SCHED_TEK 0x54454B

/** The longest role, in bytes, without the zero at its end. */
#define PTHREAD_ROLE_MAX 24

/** What a thread is for. */
typedef struct pthread_attributes {
    /** A name such as "gas-detection" or "net/accept"; "" is none. */
    char role[32];
    /** Whether other threads wait for it. */
    int is_time_critical;
    /** A nice value, which orders time-critical threads among themselves. */
    int priority;
    /** Whether it waits also while no time-critical thread is there. */
    int is_lazy;
    /** The least stack that it needs, in bytes; 0 says nothing. Counts before it exists. */
    size_t stack_bytes;
} pthread_attributes_t;

/** A thread of which nothing is said. */
#define PTHREAD_ATTRIBUTES_INIT { "", 0, 0, 0, 0 }

/** Where a thread is. */
enum {
    /** Where the program wants it. */
    PTHREAD_REGION_OWN = 0,
    /** Where time-critical threads are. */
    PTHREAD_REGION_FAST = 1,
    /** Where the others wait for them. */
    PTHREAD_REGION_LAZY = 2
};

/** What is known of a thread. */
typedef struct pthread_information {
    /** How many bytes this has, said by who asks: PTHREAD_INFORMATION_INIT does. Then how many
        are told. */
    size_t size;
    /** The kernel's number of the thread. */
    pid_t tid;
    /** Whether other threads wait for it. */
    int is_time_critical;
    /** What it is for; "" is nothing. */
    char role[32];
    /** A nice value, which orders time-critical threads among themselves. */
    int priority;
    /** Whether it waits also while no time-critical thread is there. */
    int is_lazy;
    /** Where it is, PTHREAD_REGION_FAST for instance. */
    int region;
    /** What the program wants of the kernel, wherever it is: SCHED_OTHER for instance. */
    int policy;
    /** When it began, in nanoseconds of CLOCK_BOOTTIME. */
    uint64_t created_ns;
    /** The size of its stack without its guard, and the most of it that was ever used: what
        `stacks=off` and the thread that the program began with leave 0. */
    size_t stack_bytes;
    size_t stack_bytes_peak;
} pthread_information_t;

/** Nothing is known yet. */
#define PTHREAD_INFORMATION_INIT \
    { sizeof(pthread_information_t), 0, 0, "", 0, 0, 0, 0, 0, 0, 0 }

/* What libmilieu_preload.so has; later versions have more at the end. */
struct milieu_threads {
    unsigned version;
    int (*set_attributes)(pthread_t, const pthread_attributes_t *);
    int (*get_attributes)(pthread_t, pthread_attributes_t *);
    int (*attr_set_attributes)(pthread_attr_t *, const pthread_attributes_t *);
    int (*attr_get_attributes)(const pthread_attr_t *, pthread_attributes_t *);
    int (*set_role)(pthread_t, const char *);
    int (*attr_set_role)(pthread_attr_t *, const char *);
    int (*find)(const char *, pthread_t *, size_t, size_t *);
    /* From version 2 on; for those who mediate within a program. */
    int (*exclude)(pthread_t);
    int (*set_blocked)(pthread_t, int);
    int (*waits)(pthread_t, unsigned);
    /* From version 3 on. */
    int (*get_information)(pthread_t, pthread_information_t *);
};
/* The oldest that will do; what is newer is looked for in what was found. */
#define MILIEU_THREADS_VERSION 1
#define MILIEU_THREADS_TELLING_VERSION 3

/* How a program finds it: asks for a policy that neither the kernel nor the C library knows. That
   works in whatever way a program is linked. */
#define MILIEU_THREADS_POLICY 0x54454C
struct milieu_threads_request {
    /* Its priority is the version. */
    struct sched_param param;
    const struct milieu_threads *here;
};

/* Whether it was said that Milieu is not there: one for the program, however many of its sources
   include this. */
__attribute__((weak)) int milieu_threads_absence_said = 0;

static inline const struct milieu_threads *milieu_threads_here(void)
{
    /* 0 is not known yet, 1 absent, anything else where it is. */
    static size_t known = 0;
    size_t here = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (here == 0) {
        struct milieu_threads_request request;
        memset(&request, 0, sizeof request);
        request.param.sched_priority = MILIEU_THREADS_VERSION;
        here = 1;
        if (pthread_setschedparam(pthread_self(), MILIEU_THREADS_POLICY, &request.param) == 0
            && request.here)
            here = (size_t)request.here;
        __atomic_store_n(&known, here, __ATOMIC_RELEASE);
    }
    return here == 1 ? NULL : (const struct milieu_threads *)here;
}

static inline int milieu_threads_absent(void)
{
#ifndef MILIEU_THREADS_SILENT
    static const char text[] =
        "milieu: threads are scheduled as always: Milieu is not here; `milieu thread run` starts "
        "this program with it\n";
    if (!__atomic_exchange_n(&milieu_threads_absence_said, 1, __ATOMIC_ACQ_REL)) {
        int before = errno;
        if (write(2, text, sizeof text - 1) < 0)
            errno = before;
    }
#endif
    return 0;
}

/** Whether Milieu is there: whether anything here has an effect. */
static inline int milieu_threads_are_served(void)
{
    return milieu_threads_here() != NULL;
}

/** Writes a role into attributes. EINVAL if it is too long; what else roles may be is known when
    they are set. */
static inline int pthread_attributes_set_role(pthread_attributes_t *attributes, const char *role)
{
    size_t length = strlen(role);
    if (length > PTHREAD_ROLE_MAX)
        return EINVAL;
    memcpy(attributes->role, role, length);
    memset(attributes->role + length, 0, sizeof attributes->role - length);
    return 0;
}

/** Sets what a thread is for. */
static inline int pthread_set_attributes(pthread_t thread, const pthread_attributes_t *attributes)
{
    const struct milieu_threads *here = milieu_threads_here();
    return here ? here->set_attributes(thread, attributes) : milieu_threads_absent();
}

/** Tells what a thread is for: nothing, where Milieu is not there. */
static inline int pthread_get_attributes(pthread_t thread, pthread_attributes_t *attributes)
{
    const struct milieu_threads *here = milieu_threads_here();
    if (here)
        return here->get_attributes(thread, attributes);
    memset(attributes, 0, sizeof *attributes);
    return 0;
}

/** Sets the role of a thread, and leaves its other attributes. */
static inline int pthread_setrole_np(pthread_t thread, const char *role)
{
    const struct milieu_threads *here = milieu_threads_here();
    return here ? here->set_role(thread, role) : milieu_threads_absent();
}

/** Sets what threads are for that will be created with these attributes. */
static inline int pthread_attr_setattributes_np(
    pthread_attr_t *attr, const pthread_attributes_t *attributes)
{
    const struct milieu_threads *here = milieu_threads_here();
    return here ? here->attr_set_attributes(attr, attributes) : milieu_threads_absent();
}

/** Tells what threads are for that will be created with these attributes. */
static inline int pthread_attr_getattributes_np(
    const pthread_attr_t *attr, pthread_attributes_t *attributes)
{
    const struct milieu_threads *here = milieu_threads_here();
    if (here)
        return here->attr_get_attributes(attr, attributes);
    memset(attributes, 0, sizeof *attributes);
    return 0;
}

/** Sets the role of threads that will be created with these attributes. */
static inline int pthread_attr_setrole_np(pthread_attr_t *attr, const char *role)
{
    const struct milieu_threads *here = milieu_threads_here();
    return here ? here->attr_set_role(attr, role) : milieu_threads_absent();
}

/** Finds the threads of a role: writes as many as there is room for, and how many there are.
    Threads may end at any time; whoever finds one sees to it that it does not. */
static inline int pthread_find_role_np(
    const char *role, pthread_t *threads, size_t room, size_t *count)
{
    const struct milieu_threads *here = milieu_threads_here();
    if (here)
        return here->find(role, threads, room, count);
    if (count)
        *count = 0;
    return 0;
}

/** Tells all that is known of a thread. What its stack was is measured in this moment. ENOSYS
    where Milieu is not there. */
static inline int pthread_get_information_np(pthread_t thread, pthread_information_t *information)
{
    const struct milieu_threads *here = milieu_threads_here();
    if (!here || here->version < MILIEU_THREADS_TELLING_VERSION)
        return ENOSYS;
    return here->get_information(thread, information);
}

/* SCHED_TEK and its priorities succeed also where Milieu is not there: the kernel and the C library
   know no such policy. */

/* Whether SCHED_TEK was asked for in vain: one for the program. */
__attribute__((weak)) int milieu_threads_absent_policy = 0;

static inline int milieu_threads_absent_tek(void)
{
    __atomic_store_n(&milieu_threads_absent_policy, 1, __ATOMIC_RELAXED);
    return milieu_threads_absent();
}

/* What a priority is answered with that was refused: it may be one of SCHED_TEK's. */
static inline int milieu_threads_absent_priority(int result, int policy, int priority)
{
    int is_nice = priority >= -20 && priority <= 19;
    if (result == EINVAL && policy == SCHED_OTHER && is_nice && !milieu_threads_here()
        && __atomic_load_n(&milieu_threads_absent_policy, __ATOMIC_RELAXED))
        return 0;
    return result;
}

static inline int milieu_threads_setschedparam(
    pthread_t thread, int policy, const struct sched_param *param)
{
    if (policy == SCHED_TEK && !milieu_threads_here())
        return milieu_threads_absent_tek();
    return pthread_setschedparam(thread, policy, param);
}

static inline int milieu_threads_setschedprio(pthread_t thread, int priority)
{
    int policy = 0;
    struct sched_param param;
    int result = pthread_setschedprio(thread, priority);
    if (result != EINVAL || pthread_getschedparam(thread, &policy, &param) != 0)
        return result;
    return milieu_threads_absent_priority(result, policy, priority);
}

static inline int milieu_threads_attr_setschedpolicy(pthread_attr_t *attr, int policy)
{
    if (policy == SCHED_TEK && !milieu_threads_here())
        return milieu_threads_absent_tek();
    return pthread_attr_setschedpolicy(attr, policy);
}

static inline int milieu_threads_attr_setschedparam(
    pthread_attr_t *attr, const struct sched_param *param)
{
    int policy = 0;
    int result = pthread_attr_setschedparam(attr, param);
    if (result != EINVAL || pthread_attr_getschedpolicy(attr, &policy) != 0)
        return result;
    return milieu_threads_absent_priority(result, policy, param->sched_priority);
}

#define pthread_setschedparam(thread, policy, param) \
    milieu_threads_setschedparam(thread, policy, param)
#define pthread_setschedprio(thread, priority) milieu_threads_setschedprio(thread, priority)
#define pthread_attr_setschedpolicy(attr, policy) milieu_threads_attr_setschedpolicy(attr, policy)
#define pthread_attr_setschedparam(attr, param) milieu_threads_attr_setschedparam(attr, param)

#ifdef __cplusplus
}
#endif

#endif
