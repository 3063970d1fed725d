pub fn doubled(number: i64) -> i64 {
    number * 2
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_doubles() {
        assert_eq!(super::doubled(21), 42);
    }
}
