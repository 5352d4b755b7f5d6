//! How much of something a test does.

/// So much natively, and under Miri, which takes thousands of times as long,
/// what fits a check of every change. Tests compiled with `MILIEU_MIRI=long` do
/// the size between under Miri.
pub const fn size<T: Copy>(native: T, long: T, short: T) -> T {
    if !cfg!(miri) {
        native
    } else if option_env!("MILIEU_MIRI").is_some() {
        long
    } else {
        short
    }
}
