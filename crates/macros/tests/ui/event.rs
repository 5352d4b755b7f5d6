use milieu_macros::Event;

#[derive(Event)]
enum Weather {
    Sunny,
}

#[derive(Event)]
struct Pair(u8, u8);

#[derive(Event)]
struct Twice {
    #[event(id = 1)]
    first: u8,
    #[event(id = 1)]
    second: u8,
}

#[derive(Event)]
struct Unknown {
    #[event(private)]
    field: u8,
}

#[derive(Event)]
struct Both {
    #[event(extends)]
    first: Twice,
    #[event(extends)]
    second: Twice,
}

fn main() {}
