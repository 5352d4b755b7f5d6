//! Stacks: how deep they were, how large they need to be.
