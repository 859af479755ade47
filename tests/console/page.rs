//! Reads and rewrites a page.

use std::ops::Range;

/// A page, by its sections; the first is what is before the first `##`.
pub(crate) struct Page {
    lines: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

pub(crate) struct Section {
    pub(crate) heading: String,
    line: usize,
    pub(crate) blocks: Vec<Block>,
}

pub(crate) enum Block {
    /// The name and text of a file.
    File(String, String),
    Console(Vec<Exchange>),
}

/// A command and what it shows.
pub(crate) struct Exchange {
    pub(crate) command: String,
    /// The line of the page that it begins on, counted from 1.
    pub(crate) line: usize,
    /// The lines of the page that say what it shows, counted from 0.
    pub(crate) shown: Range<usize>,
}

impl Page {
    /// The error is the first mistake, with its line.
    pub(crate) fn parse(text: &str) -> Result<Page, String> {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let mut sections = vec![Section { heading: String::new(), line: 0, blocks: Vec::new() }];
        let mut next = 0;
        while let Some(line) = lines.get(next) {
            next += 1;
            if let Some(heading) = line.strip_prefix("## ") {
                if sections.iter().any(|section| section.heading == heading) {
                    return Err(format!("line {next}: another section has this heading"));
                }
                sections.push(Section { heading: heading.to_owned(), line: next, blocks: Vec::new() });
            }
            let kind = line.trim_start_matches('`');
            let fence = &line[..line.len() - kind.len()];
            if fence.len() < 3 {
                continue;
            }
            let length = lines[next..].iter().position(|line| line == fence);
            let length = length.ok_or_else(|| format!("line {next}: the block is not closed"))?;
            let inside = next..next + length;
            let block = match kind.split_once(' ') {
                Some((_, name)) => Block::File(name.to_owned(), lines[inside].join("\n") + "\n"),
                None if kind != "console" => {
                    let what = "a block is `console`, or has a language and the name of a file";
                    return Err(format!("line {next}: {what}"));
                }
                None if sections.len() == 1 => return Err(format!("line {next}: a command before the first section")),
                None => Block::Console(exchanges(&lines, inside)?),
            };
            sections.last_mut().expect("the first is there").blocks.push(block);
            next += length + 1;
        }
        let page = Page { lines, sections };
        page.sections.get(1).ok_or("the page has no section")?;
        let without = page.sections[1..].iter().find(|section| section.exchanges().next().is_none());
        if let Some(section) = without {
            return Err(format!("line {}: the section has no command", section.line));
        }
        Ok(page)
    }

    /// What the page says that a command shows.
    pub(crate) fn lines(&self, exchange: &Exchange) -> &[String] {
        &self.lines[exchange.shown.clone()]
    }

    /// The text of the page with these lines below the commands of a section.
    pub(crate) fn with(mut self, section: usize, shown: &[Vec<String>]) -> String {
        let ranges: Vec<_> = self.sections[section].exchanges().map(|exchange| exchange.shown.clone()).collect();
        for (range, lines) in ranges.into_iter().zip(shown).rev() {
            self.lines.splice(range, lines.iter().cloned());
        }
        self.lines.join("\n") + "\n"
    }
}

impl Section {
    fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.blocks.iter().flat_map(|block| match block {
            Block::File(..) => &[][..],
            Block::Console(exchanges) => exchanges,
        })
    }
}

fn exchanges(lines: &[String], block: Range<usize>) -> Result<Vec<Exchange>, String> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (number, line) in block.clone().zip(&lines[block]) {
        let more = line.strip_prefix('>').map(|more| more.strip_prefix(' ').unwrap_or(more));
        match (line.strip_prefix("$ "), more, exchanges.last_mut()) {
            (Some(command), _, _) => {
                let shown = number + 1..number + 1;
                exchanges.push(Exchange { command: command.to_owned(), line: number + 1, shown });
            }
            (None, _, None) => return Err(format!("line {}: a text without a command", number + 1)),
            (None, Some(more), Some(last)) if last.shown.is_empty() => {
                last.command.push('\n');
                last.command.push_str(more);
                last.shown = number + 1..number + 1;
            }
            (None, _, Some(last)) => last.shown.end = number + 1,
        }
    }
    Ok(exchanges)
}
