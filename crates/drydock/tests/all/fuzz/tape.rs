//! Choices, one after the other, from which arbitrary requests are made. When they are used up, the plainest choice is
//! made, so that a shorter tape makes a simpler request: that is how a failure shrinks.

pub struct Tape {
    choices: std::vec::IntoIter<u16>,
}

impl Tape {
    pub fn new(choices: Vec<u16>) -> Self {
        Self { choices: choices.into_iter() }
    }

    pub fn is_used_up(&self) -> bool {
        self.choices.len() == 0
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.choices.next().unwrap_or_default()) % bound.max(1)
    }

    /// True once in so many times, and never at the end.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| u8::try_from(self.below(256)).unwrap_or_default()).collect()
    }
}
