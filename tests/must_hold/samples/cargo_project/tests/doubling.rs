#[test]
fn threads_double_too() {
    let answer = std::thread::spawn(|| sample::doubled(4)).join().unwrap();
    assert_eq!(answer, 8);
}
