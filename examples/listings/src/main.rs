//! Runs every listing of the paper and prints a line for each.

fn main() -> Result<(), milieu::Error> {
    for listing in listings::LISTINGS {
        let line = (listing.run)()?;
        println!("{:<5}  {}: {line}", listing.section, listing.title);
    }
    Ok(())
}
