/*
 * What joins programs of an older compiler to a library that a newer one has built with the
 * sanitizer for threads.
 *
 * Newer compilers call functions of the sanitizer by names that older ones do not have. And no
 * sanitizer for threads understands fences, by which a counted reference (triomphe's, for
 * instance) orders what was done to a thing before it is freed: it counts down with `release`, and
 * whoever comes to 0 has an `acquire` fence. Here counting down is `acquire` as well, which says
 * the same without a fence.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int byte, size_t size);
uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *place, uint64_t by, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *place, uint64_t by, int order);

void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *__tsan_memset(void *to, int byte, size_t size) { return memset(to, byte, size); }

uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *place, uint64_t by, int order) {
    if (order == __ATOMIC_RELEASE) order = __ATOMIC_ACQ_REL;
    return __real___tsan_atomic64_fetch_sub(place, by, order);
}
