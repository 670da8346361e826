//! `login`: asks for the address and the credentials of the service, tests them, and saves them as a profile.

mod run;

// Asks for what is not given.
mod answers;

// What is saved, and where.
mod save;

pub(super) use run::run;
