mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions ~/.zfunc ~/.local/share/man/man1
