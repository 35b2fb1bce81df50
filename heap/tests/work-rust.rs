// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
//
// A Rust program: its library asks for the bounds of the stack before a thread allocates.

fn work(thread: usize) -> usize {
    let words: Vec<String> = (0..2000).map(|n| format!("{} of {}", n, thread)).collect();
    words.iter().map(|word| word.len()).sum()
}

fn main() {
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || work(n))).collect();
    for thread in threads {
        println!("{}", thread.join().unwrap());
    }
}
