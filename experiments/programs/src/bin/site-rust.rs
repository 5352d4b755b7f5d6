//! Reads every value of `site.ini`: what a specification adds to a program in Rust.

use milieu::Milieu;

mod site {
    milieu::environment!("../coelektra/programs/site.ini");
}

fn main() -> Result<(), milieu::Error> {
    let milieu = Milieu::open("site")?;
    let cx = milieu.context::<site::Environment>()?;
    println!("{}", cx.sw.pi.language);
    println!("{}", cx.sw.pi.title);
    println!("{}", cx.sw.pi.hello);
    println!("{}", cx.sw.pi.goodbye);
    println!("{}", cx.sw.pi.tamper);
    println!("{}", cx.sw.pi.refresh);
    println!("{}", cx.sw.pi.visits);
    println!("{:?}", cx.sw.pi.theme);
    println!("{}", cx.sw.pi.width);
    println!("{}", cx.sw.pi.threads);
    println!("{}", cx.sw.pi.port);
    println!("{}", cx.sw.pi.root);
    println!("{}", cx.sw.pi.timeout);
    println!("{}", cx.sw.pi.verbose);
    println!("{}", cx.hw.pi.gpio.folder);
    println!("{}", cx.hw.pi.gpio.tamper);
    println!("{:?}", cx.hw.pi.gpio.edge);
    println!("{}", cx.hw.pi.gpio.poll);
    println!("{}", cx.hw.pi.led);
    println!("{}", cx.hw.pi.clock);
    println!("{}", cx.log.file);
    println!("{:?}", cx.log.level);
    println!("{}", cx.version);
    Ok(())
}
