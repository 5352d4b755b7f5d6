//! What threads do, in Rust: as `worlds.c`.

use std::cell::Cell;
use std::process::Command;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

struct Told(&'static str);

impl Drop for Told {
    fn drop(&mut self) {
        println!("{} goes", self.0);
    }
}

thread_local! {
    static OF_THREAD: Told = const { Told("thread_local") };
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

fn sums() {
    let sum = Mutex::new(0);
    thread::scope(|scope| {
        for number in 0..50 {
            let sum = &sum;
            scope.spawn(move || *sum.lock().unwrap() += number);
        }
    });
    println!("sum {}", sum.lock().unwrap());
}

fn panics() {
    let joined = thread::spawn(|| {
        let _told = Told("local");
        std::panic::resume_unwind(Box::new("told"))
    })
    .join();
    let said: Result<(), _> = joined;
    println!("{:?}", said.unwrap_err().downcast_ref::<&str>());
}

fn thread_locals() {
    thread::spawn(|| {
        OF_THREAD.with(|it| println!("{}", it.0));
        NUMBER.set(NUMBER.get() + 1);
        println!("number {}", NUMBER.get());
    })
    .join()
    .unwrap();
    println!("number {}", NUMBER.get());
}

fn depth(levels: u32) -> u32 {
    let frame = std::hint::black_box([levels as u8; 1000]);
    if levels == 0 { 0 } else { depth(levels - 1) + 1 + u32::from(frame[0] != frame[999]) }
}

fn builders() {
    let small = thread::Builder::new().name("small".into()).stack_size(200 << 10);
    let joined = small.spawn(|| (thread::current().name().map(str::to_owned), depth(100)));
    println!("{:?}", joined.unwrap().join().unwrap());
    println!("{}", thread::spawn(|| depth(150)).join().unwrap());
}

fn channels() {
    let (sender, receiver) = mpsc::channel();
    let barrier = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let (sender, barrier) = (sender.clone(), barrier.clone());
            thread::spawn(move || {
                barrier.wait();
                sender.send(number).unwrap();
            })
        })
        .collect();
    drop(sender);
    println!("{}", receiver.iter().sum::<i32>());
    threads.into_iter().for_each(|it| it.join().unwrap());
}

fn commands() {
    let own = std::env::current_exe().unwrap();
    let output = thread::spawn(move || Command::new(own).arg("channels").output().unwrap());
    print!("{}", String::from_utf8_lossy(&output.join().unwrap().stdout));
}

const CASES: &[(&str, fn())] = &[
    ("sums", sums),
    ("panics", panics),
    ("thread-locals", thread_locals),
    ("builders", builders),
    ("channels", channels),
    ("commands", commands),
];

fn main() {
    let wanted = std::env::args().nth(1);
    for (name, run) in CASES {
        match &wanted {
            None => println!("{name}"),
            Some(wanted) if wanted == name => run(),
            Some(_) => {}
        }
    }
}
