/* A program of many threads that knows nothing of Milieu: what a device in a kitchen
 * runs, by kinds of threads that go so deep into their stacks.
 *
 *   crowd hold N [KIB]       N threads at once, until the standard input ends; none goes
 *                            deeper than that
 *   crowd churn N ALIVE      N threads one after the other, so many at once
 *   crowd deep KIB TIMES     threads of one kind that go so deep, one after the other, and
 *                            what the first takes of the address space, in KiB
 *
 * It prints a line of `name number` pairs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A thread and what it is to do. */
struct work {
    size_t kib;
    int is_to_stay;
    int is_to_wait;        /* until the lock is free */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int arrived;
static int is_over;
static size_t deepest_kib = (size_t)1 << 20;

/* Touches so much of the stack, a page at least. */
static __attribute__((noinline)) size_t descend(char *top, size_t bytes)
{
    volatile char frame[512];
    size_t used = (size_t)(top - (char *)frame);
    frame[0] = (char)used;
    frame[sizeof frame - 1] = frame[0];
    if (used < bytes)
        used = descend(top, bytes);
    return used + (size_t)(frame[0] != frame[sizeof frame - 1]);
}

static void *live(void *argument)
{
    struct work *work = argument;
    char top;
    if (work->is_to_wait) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    descend(&top, work->kib << 10);
    if (!work->is_to_stay)
        return NULL;
    pthread_mutex_lock(&lock);
    ++arrived;
    pthread_cond_broadcast(&changed);
    while (!is_over)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Each kind has a start function of its own, as in programs that do something. */
#define KIND(name) void *name(void *work); void *name(void *work) { return live(work); }
KIND(sensor)
KIND(logger)
KIND(timer)
KIND(network)
KIND(worker)
KIND(parser)
KIND(database)
KIND(codec)
KIND(script)
KIND(user_interface)
KIND(media_controller)
KIND(watchdog)
KIND(updater)
KIND(telemetry)
KIND(recursive)

struct kind {
    void *(*start)(void *);
    unsigned threads;      /* of 273 */
    size_t kib;            /* how deep */
    size_t set_kib;        /* the size that the program sets; 0: none */
};

static const struct kind kinds[] = {
    {sensor, 60, 12, 0},
    {logger, 40, 20, 0},
    {timer, 40, 28, 0},
    {network, 40, 64, 0},
    {worker, 40, 160, 0},
    {parser, 24, 360, 0},
    {database, 12, 720, 0},
    {codec, 8, 1080, 0},
    {script, 4, 1700, 0},
    {user_interface, 1, 3400, 0},
    {media_controller, 1, 2600, 0},
    {watchdog, 1, 12, 64},
    {updater, 1, 60, 128},
    {telemetry, 1, 100, 256},
};
enum { KINDS = sizeof kinds / sizeof *kinds, ALL = 273 };

/* The kinds take turns by their shares, so that any number of threads is a mixture:
 * whoever is furthest behind its share comes next. */
static const struct kind *kind_of_next(unsigned begun[KINDS], unsigned number)
{
    int next = 0;
    double furthest = -1e9;
    for (int i = 0; i < KINDS; ++i) {
        double behind = kinds[i].threads * (double)(number + 1) / ALL - begun[i];
        if (behind > furthest) {
            furthest = behind;
            next = i;
        }
    }
    ++begun[next];
    return &kinds[next];
}

/* Begins a thread. Those of a kind differ by a tenth. */
static int begin(pthread_t *thread, struct work *work, const struct kind *kind, unsigned number)
{
    pthread_attr_t attr;
    work->kib = kind->kib - kind->kib * (number % 3) / 20;
    if (work->kib > deepest_kib)
        work->kib = deepest_kib;
    if (kind->set_kib == 0)
        return pthread_create(thread, NULL, kind->start, work);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, kind->set_kib << 10);
    int error = pthread_create(thread, &attr, kind->start, work);
    pthread_attr_destroy(&attr);
    return error;
}

static void *allocated(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory) {
        perror("crowd");
        exit(1);
    }
    return memory;
}

static int hold(unsigned threads)
{
    pthread_t *begun = allocated(threads, sizeof *begun);
    struct work *works = allocated(threads, sizeof *works);
    unsigned of_kind[KINDS] = {0}, there = 0, first = 0;
    for (unsigned i = 0; i < threads; ++i) {
        works[there].is_to_stay = 1;
        if (begin(&begun[there], &works[there], kind_of_next(of_kind, i), i) == 0)
            ++there;
        else if (first == 0)
            first = i + 1;
    }
    pthread_mutex_lock(&lock);
    while (arrived < (int)there)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    printf("begun %u failed %u first %u\n", there, threads - there, first);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < there; ++i)
        pthread_join(begun[i], NULL);
    return 0;
}

/* A line of /proc/self/status, in KiB. */
static long status_kib(const char *name)
{
    char line[128];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = atol(line + strlen(name));
    if (file)
        fclose(file);
    return kib;
}

static int churn(unsigned threads, unsigned alive)
{
    pthread_t *begun = allocated(alive, sizeof *begun);
    struct work *works = allocated(alive, sizeof *works);
    unsigned of_kind[KINDS] = {0}, failed = 0;
    long space[10] = {0}, resident[10] = {0};
    for (unsigned done = 0; done < threads;) {
        unsigned there = 0;
        unsigned batch = threads - done < alive ? threads - done : alive;
        for (unsigned i = 0; i < batch; ++i) {
            const struct kind *kind = kind_of_next(of_kind, (done + i) % ALL);
            if (begin(&begun[there], &works[there], kind, i) == 0)
                ++there;
            else
                ++failed;
            if ((done + i) % ALL == ALL - 1)
                memset(of_kind, 0, sizeof of_kind);
        }
        for (unsigned i = 0; i < there; ++i)
            pthread_join(begun[i], NULL);
        /* The greatest of each tenth, looked at now and then. */
        unsigned tenth = (unsigned)((unsigned long long)done * 10 / threads);
        if (done / alive % 16 == 0 || done + batch >= threads) {
            long kib = status_kib("VmSize:");
            space[tenth] = kib > space[tenth] ? kib : space[tenth];
            kib = status_kib("VmRSS:");
            resident[tenth] = kib > resident[tenth] ? kib : resident[tenth];
        }
        done += batch;
    }
    printf("begun %u failed %u", threads - failed, failed);
    for (int i = 0; i < 10; ++i)
        printf(" space%d %ld resident%d %ld", i, space[i], i, resident[i]);
    putchar('\n');
    return 0;
}

static int deep(size_t kib, unsigned times)
{
    for (unsigned i = 0; i < times; ++i) {
        pthread_t thread;
        struct work work = {kib, 0, 1};
        pthread_mutex_lock(&lock);
        long before = status_kib("VmSize:");
        if (pthread_create(&thread, NULL, recursive, &work) != 0)
            return 1;
        long taken = status_kib("VmSize:") - before;
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
        /* What the last one leaves may be the next one's, which takes nothing new then. */
        if (i == 0)
            printf("taken %ld ", taken);
    }
    printf("ended %u\n", times);
    return 0;
}

int main(int count, char **arguments)
{
    const char *what = count > 2 ? arguments[1] : "";
    unsigned first = count > 2 ? (unsigned)atoi(arguments[2]) : 0;
    unsigned second = count > 3 ? (unsigned)atoi(arguments[3]) : 1;
    if (strcmp(what, "hold") == 0) {
        if (count > 3)
            deepest_kib = second;
        return hold(first);
    }
    if (strcmp(what, "churn") == 0 && second > 0)
        return churn(first, second);
    if (strcmp(what, "deep") == 0)
        return deep(first, second);
    puts("crowd hold N [KIB] | churn N ALIVE | deep KIB TIMES");
    return 0;
}
