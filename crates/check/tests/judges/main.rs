//! Every judge, with the traces of mocks and of our client, and with one change of each.

mod acts;
mod bad_auth_clients;
mod bad_clients;
mod causes;
mod delay;
mod ends;
mod gateways;
mod issuers;
mod mutants;
mod pipe;
mod process;
mod properties;
mod servers;
mod shipped;
mod slow_mutants;
mod slow_twin;
mod tokens;
