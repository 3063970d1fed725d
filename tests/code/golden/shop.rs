use std::collections::{HashMap, HashSet};
use std::fmt;

pub const LIMIT: usize = 3;
static NAME: &str = "shop";

/// Sells things.
#[derive(Debug, Clone)]
pub struct Shop<T> {
    name: String,
    pub items: Vec<T>,
}

pub enum Day {
    Monday,
    Other(u8),
}

pub trait Priced: fmt::Debug {
    type Unit;
    fn price(&self) -> u32;
}

impl<T> Shop<T> {
    pub fn open(name: &str, items: Vec<T>) -> Self {
        if name.is_empty() {
            panic!()
        }
        Shop { name: name.into(), items }
    }
}

impl Priced for Shop<u8> {
    type Unit = u8;
    fn price(&self) -> u32 {
        match self.items.len() {
            0 => 0,
            _ => 1,
        }
    }
}

mod stock {
    pub fn count() -> usize {
        0
    }
}

macro_rules! square {
    ($x:expr) => { $x * $x };
}
