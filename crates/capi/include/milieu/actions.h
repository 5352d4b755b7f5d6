/*
 * Callbacks on layers: actions on global switches, and layers that each context evaluates. Included
 * by milieu.h, which says what holds of all callbacks.
 */
/* It includes this in its place, wherever a program begins. */
#include <milieu.h>

#ifndef MILIEU_ACTIONS_H
#define MILIEU_ACTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- actions */

/**
 * What an action gets to see; valid while the action runs, in its thread. Later it is
 * MILIEU_FREED, and elsewhere MILIEU_WRONG_THREAD.
 */
typedef struct milieu_activation milieu_activation;

/** An action: see milieu_coordinator_on_activation. */
typedef milieu_result (*milieu_action)(void *user, milieu_activation *activation);

/** Keeps an action registered. */
typedef struct milieu_registration milieu_registration;

/**
 * Runs an action whenever a layer is activated globally: it was inactive, or had another value.
 * Frames run no actions. It runs in the thread that switches, while nothing is locked, in several
 * threads at once if several switch. The context that switches is in use meanwhile: an action
 * switches further layers by milieu_activation_activate, or with a context of its own.
 */
MILIEU_CHECKED milieu_result milieu_coordinator_on_activation(
    const milieu_coordinator *coordinator, milieu_text id, milieu_action action, void *user,
    milieu_destroy destroy, milieu_registration **registration);

/** Runs an action whenever a layer is deactivated globally. */
MILIEU_CHECKED milieu_result milieu_coordinator_on_deactivation(
    const milieu_coordinator *coordinator, milieu_text id, milieu_action action, void *user,
    milieu_destroy destroy, milieu_registration **registration);

/**
 * Removes an action, and waits for it if it runs in another thread. An action may remove itself;
 * it is destroyed when it has ended.
 */
void milieu_registration_free(milieu_registration *registration);

/** The layer's identifier; valid while the action runs. */
MILIEU_CHECKED milieu_result milieu_activation_layer(const milieu_activation *activation,
    milieu_text *id);

/** The value that the layer got; empty on deactivation. Valid while the action runs. */
MILIEU_CHECKED milieu_result milieu_activation_value(const milieu_activation *activation,
    milieu_text *value);

/** Activates a layer in the context that switches; its actions run after those that run now. */
MILIEU_CHECKED milieu_result milieu_activation_activate(milieu_activation *activation,
    milieu_layer layer);

/**
 * Activates a contextual value as a layer in the context that switches: in each context its own
 * value, as milieu_context_activate_value. An action runs for contexts of any environment, so that
 * `layout` says whose number `value` is: `station_layout(), STATION_AT_SW_LANGUAGE`. The context that
 * switches may have another one.
 *
 * MILIEU_NO_SUCH: the environment has no such value. MILIEU_WRONG_LAYOUT, MILIEU_UNFIT: there cannot
 * be such an environment, or such a value.
 */
MILIEU_CHECKED milieu_result milieu_activation_activate_value(milieu_activation *activation,
    const milieu_layout *layout, uint32_t value);

/** Deactivates a layer in the context that switches. */
MILIEU_CHECKED milieu_result milieu_activation_deactivate(milieu_activation *activation,
    milieu_text id);

/* ---------------------------------------------------------------- thread-based layers */

/**
 * What a thread-based layer may know of the context that evaluates it; valid during the callback,
 * in its thread, as a milieu_activation.
 */
typedef struct milieu_scope milieu_scope;

/**
 * A thread-based layer: says by milieu_scope_answer what its value is in the context that `scope`
 * describes; without an answer it is inactive. It must be a function of `scope` alone, and may be
 * called by several threads at once. If it fails, it is inactive in that context.
 */
typedef milieu_result (*milieu_evaluate)(void *user, milieu_scope *scope);

/** The number of the context; compare milieu_context_identity. */
uint64_t milieu_scope_identity(const milieu_scope *scope);

/** The role of the context; valid during the callback. */
milieu_text milieu_scope_role(const milieu_scope *scope);

/** The text of a contextual value that the layer depends on; empty where there is none. Valid during the callback. */
milieu_text milieu_scope_get(const milieu_scope *scope, milieu_text pattern);

/** The layer's value in this context; it is copied. */
milieu_result milieu_scope_answer(milieu_scope *scope, milieu_text value);

/**
 * Activates a layer that each context evaluates for itself: when it adopts the layer, and when a
 * value changes that `depends_on` names (names with placeholders; null where `count` is 0); it may
 * be asked more often. Whoever leads to it, by an assignment for instance, is told if it fails.
 */
MILIEU_CHECKED milieu_result milieu_context_activate_each(milieu_context *context,
    milieu_text id, const milieu_text *depends_on, size_t count, milieu_evaluate evaluate,
    void *user, milieu_destroy destroy);

/** The same in the context that switches, as milieu_activation_activate. */
MILIEU_CHECKED milieu_result milieu_activation_activate_each(milieu_activation *activation,
    milieu_text id, const milieu_text *depends_on, size_t count, milieu_evaluate evaluate,
    void *user, milieu_destroy destroy);

#ifdef __cplusplus
}
#endif

#endif
