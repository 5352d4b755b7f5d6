//! Milieu: concurrent software that adapts to its surroundings.
