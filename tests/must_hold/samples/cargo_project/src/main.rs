fn main() {
    println!("{}", sample::doubled(21));
}
