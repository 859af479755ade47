//! The binary `rehearse`; see [`mcp_rehearsal::cli`].

fn main() -> std::process::ExitCode {
    mcp_rehearsal::cli::main()
}
