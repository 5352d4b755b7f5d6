//! The example tells what it is meant to tell.

use std::process::Command;

#[test]
fn the_pool_is_lazy_while_the_battery_is_low() {
    let output = Command::new(env!("CARGO_BIN_EXE_gas")).output();
    let output = output.expect("it can be run");
    assert!(output.status.success(), "{output:?}");
    let expected = "battery is full: the pool is as it wants\n\
                    battery is low: the pool is lazy\n\
                    battery is full: the pool is as it wants\n\
                    2 ppm on average\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
