//! Listings with all their pages.

use std::collections::HashSet;

use rehearse_protocol::{Era, List};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{CallOptions, Session};
use crate::result::{
    Failure,
    malformed::{Malformed, check_item},
};

const MAX_PAGES: usize = 10_000;

/// A listing with all its pages.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Every item as it came, including the malformed ones.
    pub items: Vec<Box<RawValue>>,
    /// The malformed items, with their indices.
    pub malformed: Vec<(usize, Malformed)>,
    /// How many pages there were.
    pub pages: usize,
    /// The cursors of the pages after the first.
    pub cursors: Vec<String>,
}

impl Listing {
    /// The items that are not malformed.
    pub fn valid(&self) -> impl Iterator<Item = &RawValue> {
        let mut malformed = self.malformed.iter().map(|(index, _)| *index).peekable();
        let items = self.items.iter().enumerate();
        items.filter_map(move |(index, item)| malformed.next_if_eq(&index).is_none().then_some(&**item))
    }

    /// Every item as a value, including the malformed ones, without those that are nested too deeply to be one.
    pub fn all_values(&self) -> impl Iterator<Item = Value> {
        self.items.iter().filter_map(|item| serde_json::from_str(item.get()).ok())
    }

    /// The items that are not malformed as values, without those that are nested too deeply to be one.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.valid().filter_map(|item| serde_json::from_str(item.get()).ok())
    }
}

/// Makes the requests of a listing, such as a session or a cache before it.
pub trait PageSource: Sync {
    /// The result of a request for one page.
    ///
    /// # Errors
    /// Any [`Failure`].
    fn fetch_page(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> impl Future<Output = Result<Box<RawValue>, Failure>> + Send;
}

impl PageSource for Session {
    async fn fetch_page(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        self.request(method, params, options).await
    }
}

impl Session {
    /// Lists the tools, as [`Session::list`].
    ///
    /// # Errors
    /// As [`Session::list`].
    pub async fn list_tools(&self, options: CallOptions) -> Result<Listing, Failure> {
        self.list(List::Tools, options).await
    }

    /// Lists what the server has. The timeout is for all pages together; the default is that of the session for listings.
    ///
    /// # Errors
    /// Any [`Failure`]; a cursor that comes twice is malformed.
    pub async fn list(&self, list: List, options: CallOptions) -> Result<Listing, Failure> {
        self.list_from(self, list, options).await
    }

    /// As [`Session::list`], but returns the pages before a failure as well, and at most `pages` of them.
    pub async fn list_partial(&self, list: List, pages: usize, options: CallOptions) -> (Listing, Option<Failure>) {
        let mut listing = Listing::default();
        let listed = self.list_into(self, &mut listing, (list.method(), list.member()), pages, options).await;
        (listing, listed.err())
    }

    /// As [`Session::list`], with requests that `pages` makes.
    ///
    /// # Errors
    /// As [`Session::list`].
    pub async fn list_from(
        &self,
        pages: &impl PageSource,
        list: List,
        options: CallOptions,
    ) -> Result<Listing, Failure> {
        let mut listing = Listing::default();
        self.list_into(pages, &mut listing, (list.method(), list.member()), usize::MAX, options).await?;
        Ok(listing)
    }

    pub(crate) async fn list_into(
        &self,
        pages: &impl PageSource,
        listing: &mut Listing,
        (method, member): (&str, &str),
        most: usize,
        options: CallOptions,
    ) -> Result<(), Failure> {
        let limit = options.timeout.unwrap_or(self.timeouts().list);
        let deadline = self.deadline(limit);
        let (mut cursors, mut cursor) = (HashSet::new(), None);
        loop {
            let params = cursor.take().map(|cursor| Map::from_iter([("cursor".to_owned(), Value::String(cursor))]));
            let options = CallOptions { timeout: Some(deadline.remaining()), ..options.clone() };
            let page = pages.fetch_page(method, params, options).await.map_err(|failure| failure.within(limit))?;
            let is_modern = self.info().version.era() == Era::Modern;
            let next = check_kind(&page, is_modern)
                .and_then(|()| take_page(&page, member, listing))
                .map_err(|error| Failure::Malformed(format!("page {} of {method}: {error}", listing.pages + 1)))?;
            listing.pages += 1;
            let Some(next) = next else { return Ok(()) };
            if !cursors.insert(next.clone()) {
                return Err(Failure::Malformed(format!("{method} gave the cursor {next:?} twice")));
            }
            if listing.pages >= most {
                return Ok(());
            }
            if listing.pages == MAX_PAGES {
                return Err(Failure::Malformed(format!("{method} has more than {MAX_PAGES} pages")));
            }
            listing.cursors.push(next.clone());
            cursor = Some(next);
        }
    }
}

/// Since 2026-07-28 a result of a type that the client does not know is invalid (Base Protocol: ResultType).
fn check_kind(page: &RawValue, is_modern: bool) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "resultType", default)]
        kind: Option<Value>,
    }
    let kind = serde_json::from_str::<Kind>(page.get()).ok().and_then(|it| it.kind);
    match kind.filter(|kind| is_modern && *kind != "complete") {
        Some(kind) => Err(format!("`resultType: {kind}`")),
        None => Ok(()),
    }
}

fn take_page(page: &RawValue, member: &str, listing: &mut Listing) -> Result<Option<String>, String> {
    let members: std::collections::HashMap<String, &RawValue> =
        serde_json::from_str(page.get()).map_err(|error| error.to_string())?;
    let list = members.get(member).ok_or_else(|| format!("`{member}` is missing"))?;
    let list: Vec<Box<RawValue>> = serde_json::from_str(list.get()).map_err(|error| format!("`{member}`: {error}"))?;
    for item in list {
        let index = listing.items.len();
        listing.malformed.extend(check_item(member, index, &item).err().map(|malformed| (index, malformed)));
        listing.items.push(item);
    }
    let next = members.get("nextCursor").map(|cursor| serde_json::from_str(cursor.get()));
    next.unwrap_or(Ok(None)).map_err(|error| format!("`nextCursor`: {error}"))
}
