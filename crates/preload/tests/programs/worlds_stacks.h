/* The cases of worlds.c that are about stacks: how large they are, and how deep threads go. */

#include "depth.h"

static void *is_deep(void *argument)
{
    return (void *)(intptr_t)depth_of((int)(intptr_t)argument);
}

static void *own_stack(size_t bytes)
{
    void *stack = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(stack != MAP_FAILED);
    return stack;
}

static void *is_on_own_stack(void *argument)
{
    char local;
    char *stack = argument;
    uintptr_t at = (uintptr_t)&local;
    return at >= (uintptr_t)stack && at < (uintptr_t)stack + 262144 ? "on it" : "elsewhere";
}

static void stacks(void)
{
    pthread_t thread;
    void *result;
    pthread_attr_t attr;
    size_t bytes, guard;
    void *stack = own_stack(262144);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstack(&attr, stack, 262144) == 0);
    CHECK(pthread_create(&thread, &attr, is_on_own_stack, stack) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    say(result);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 131072 + 65536) == 0);
    CHECK(pthread_create(&thread, &attr, is_deep, (void *)100) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    printf("set: %ld\n", (long)(intptr_t)result);
    CHECK(pthread_create(&thread, NULL, is_deep, (void *)150) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    printf("default: %ld\n", (long)(intptr_t)result);
    CHECK(pthread_attr_getstacksize(&attr, &bytes) == 0);
    CHECK(pthread_attr_getguardsize(&attr, &guard) == 0);
    printf("attributes stay: %zu %zu\n", bytes, guard);
    CHECK(pthread_attr_setstacksize(&attr, 1) == EINVAL);
    CHECK(pthread_attr_setschedpolicy(&attr, 4711) == EINVAL);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

static _Thread_local char large[1 << 20];

static void *uses_large(void *argument)
{
    large[0] = 1;
    large[sizeof large - 1] = 2;
    return (void *)(intptr_t)(large[0] + large[sizeof large - 1] + (argument != NULL));
}

static void large_storage(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, uses_large, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    printf("default: %ld\n", (long)(intptr_t)result);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 262144) == 0);
    printf("too small: %d\n", pthread_create(&thread, &attr, uses_large, NULL) == EINVAL);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

static void *has_size(void *asked)
{
    pthread_attr_t attr;
    size_t bytes;
    CHECK(pthread_getattr_np(pthread_self(), &attr) == 0);
    CHECK(pthread_attr_getstacksize(&attr, &bytes) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    return bytes + 65536 >= (uintptr_t)asked ? "as asked" : "smaller";
}

/* Light in some runs, and heavy in one. */
static void light(void)
{
    pthread_attr_t attr;
    size_t bytes;
    void *result;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_getstacksize(&attr, &bytes) == 0);
    /* What is the default anyway. */
    CHECK(pthread_attr_setstacksize(&attr, bytes) == 0);
    for (int i = 0; i < 5; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, is_deep, (void *)2) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(pthread_create(&thread, &attr, has_size, (void *)bytes) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        say(result);
    }
    CHECK(pthread_attr_destroy(&attr) == 0);
    say("light");
}

static void heavy(void)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, is_deep, (void *)100) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    printf("heavy: %ld\n", (long)(intptr_t)result);
}
