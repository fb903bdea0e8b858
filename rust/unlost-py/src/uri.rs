//! Bindings of `unlost_core::uri`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use unlost_core::uri::{
    self, ALL_POLICIES, MAX_BYTES, Policy, RuleSet, Section, Segments, Suffixes, UriError, WebUrl,
};

use crate::errors::{raise_suffix_list, raise_uri, raise_usage, uri_error};
use crate::texts::text;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_URI_BYTES", MAX_BYTES)?;
    module.add("POLICIES", PyTuple::new(module.py(), ALL_POLICIES)?)?;
    let names = RuleSet::ALL.map(RuleSet::name);
    module.add("RULE_SETS", PyTuple::new(module.py(), names)?)?;
    module.add_class::<SuffixList>()?;
    module.add_class::<KeyPolicies>()?;
    module.add_function(wrap_pyfunction!(canonical, module)?)?;
    module.add_function(wrap_pyfunction!(canonical_many, module)?)?;
    module.add_function(wrap_pyfunction!(foreign_scheme, module)?)?;
    module.add_function(wrap_pyfunction!(key, module)?)?;
    module.add_function(wrap_pyfunction!(key_many, module)?)?;
    module.add_function(wrap_pyfunction!(alternative_keys, module)?)?;
    module.add_function(wrap_pyfunction!(name_of, module)?)?;
    module.add_function(wrap_pyfunction!(names_of, module)?)?;
    module.add_function(wrap_pyfunction!(policy_name, module)?)?;
    module.add_function(wrap_pyfunction!(row_key, module)?)?;
    module.add_function(wrap_pyfunction!(segments, module)?)?;
    module.add_function(wrap_pyfunction!(spellings, module)?)?;
    module.add_function(wrap_pyfunction!(surt, module)?)?;
    module.add_function(wrap_pyfunction!(surt_many, module)?)?;
    module.add_function(wrap_pyfunction!(unsurt, module)?)?;
    module.add_function(wrap_pyfunction!(unsurt_many, module)?)
}

type Form = fn(&[u8], RuleSet, &mut Vec<u8>) -> Result<(), UriError>;

fn canonical_form(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    if uri::looks_like_surt(text) {
        return unsurt_form(text, rules, out);
    }
    uri::canonical(&WebUrl::read(text)?, rules, out)
}

fn unsurt_form(text: &[u8], rules: RuleSet, out: &mut Vec<u8>) -> Result<(), UriError> {
    if !uri::looks_like_surt(text) {
        return Err(UriError::NotSurt);
    }
    let mut surt = Vec::with_capacity(text.len());
    uri::surt_of_uri(text, rules, &mut surt)?;
    uri::unsurt(&surt, rules, out)
}

/// The core's output is always ASCII.
pub fn string<'py>(py: Python<'py>, ascii: &[u8]) -> Bound<'py, PyString> {
    PyString::new(py, &String::from_utf8_lossy(ascii))
}

pub fn rule_set(py: Python<'_>, name: &str) -> PyResult<RuleSet> {
    name.parse()
        .map_err(|error| raise_usage(py, format!("{name}: {error}")))
}

fn name_form(text: &[u8], ignore_case: bool, out: &mut Vec<u8>) -> Result<(), UriError> {
    uri::name(&WebUrl::read(text)?, out)?;
    if ignore_case {
        out.make_ascii_lowercase();
    }
    Ok(())
}

fn one<'py>(form: Form, uri: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyString>> {
    let py = uri.py();
    let mut out = Vec::new();
    form(&text(uri)?, rule_set(py, rules)?, &mut out).map_err(|error| raise_uri(py, &error))?;
    Ok(string(py, &out))
}

fn many<'py>(form: Form, uris: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyList>> {
    let rules = rule_set(uris.py(), rules)?;
    each(uris, |text, out| form(text, rules, out))
}

/// Converts each URL, or returns the error that a single call would raise.
fn each<'py>(
    uris: &Bound<'py, PyAny>,
    form: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), UriError>,
) -> PyResult<Bound<'py, PyList>> {
    let py = uris.py();
    let results = PyList::empty(py);
    let mut out = Vec::new();
    for uri in uris.try_iter()? {
        out.clear();
        match form(&text(&uri?)?, &mut out) {
            Ok(()) => results.append(string(py, &out))?,
            Err(error) => results.append(uri_error(py, &error)?)?,
        }
    }
    Ok(results)
}

#[pyfunction]
#[pyo3(signature = (uri, rules="wayback"))]
fn surt<'py>(uri: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyString>> {
    one(uri::surt_of_uri, uri, rules)
}

#[pyfunction]
#[pyo3(signature = (uris, rules="wayback"))]
fn surt_many<'py>(uris: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyList>> {
    many(uri::surt_of_uri, uris, rules)
}

#[pyfunction]
#[pyo3(signature = (uri, rules="wayback"))]
fn canonical<'py>(uri: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyString>> {
    one(canonical_form, uri, rules)
}

#[pyfunction]
#[pyo3(signature = (uris, rules="wayback"))]
fn canonical_many<'py>(uris: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyList>> {
    many(canonical_form, uris, rules)
}

#[pyfunction]
#[pyo3(signature = (surt, rules="wayback"))]
fn unsurt<'py>(surt: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyString>> {
    one(unsurt_form, surt, rules)
}

#[pyfunction]
#[pyo3(signature = (surts, rules="wayback"))]
fn unsurt_many<'py>(surts: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyList>> {
    many(unsurt_form, surts, rules)
}

#[pyfunction]
#[pyo3(signature = (uri, rules="wayback"))]
fn key<'py>(uri: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyString>> {
    one(uri::key_of_uri, uri, rules)
}

#[pyfunction]
#[pyo3(signature = (uris, rules="wayback"))]
fn key_many<'py>(uris: &Bound<'py, PyAny>, rules: &str) -> PyResult<Bound<'py, PyList>> {
    many(uri::key_of_uri, uris, rules)
}

/// The keys that other tools derive for a URL.
#[pyfunction]
#[pyo3(signature = (uri, rules="wayback"))]
fn alternative_keys<'py>(
    uri: &Bound<'py, PyAny>,
    rules: &str,
) -> PyResult<Vec<Bound<'py, PyString>>> {
    let py = uri.py();
    let keys = uri::alternative_keys(&text(uri)?, rule_set(py, rules)?);
    Ok(keys.iter().map(|key| string(py, key)).collect())
}

#[pyfunction]
#[pyo3(signature = (uri, ignore_case=false))]
fn name_of<'py>(uri: &Bound<'py, PyAny>, ignore_case: bool) -> PyResult<Bound<'py, PyString>> {
    let py = uri.py();
    let mut out = Vec::new();
    name_form(&text(uri)?, ignore_case, &mut out).map_err(|error| raise_uri(py, &error))?;
    Ok(string(py, &out))
}

#[pyfunction]
#[pyo3(signature = (uris, ignore_case=false))]
fn names_of<'py>(uris: &Bound<'py, PyAny>, ignore_case: bool) -> PyResult<Bound<'py, PyList>> {
    each(uris, |text, out| name_form(text, ignore_case, out))
}

#[pyfunction]
#[pyo3(signature = (key, uri, rules="wayback"))]
fn row_key<'py>(
    key: &Bound<'py, PyAny>,
    uri: &Bound<'py, PyAny>,
    rules: &str,
) -> PyResult<Bound<'py, PyString>> {
    let py = key.py();
    let mut out = Vec::new();
    uri::key_of_row(&text(key)?, &text(uri)?, rule_set(py, rules)?, &mut out)
        .map_err(|error| raise_uri(py, &error))?;
    Ok(string(py, &out))
}

#[pyfunction]
fn foreign_scheme(uri: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    Ok(uri::foreign_scheme(&text(uri)?))
}

type Cut<'py> = (
    Vec<Bound<'py, PyString>>,
    Vec<Bound<'py, PyString>>,
    Option<Bound<'py, PyString>>,
);

#[pyfunction]
fn segments<'py>(key: &Bound<'py, PyAny>) -> PyResult<Cut<'py>> {
    let py = key.py();
    let text = text(key)?;
    let cut = Segments::of(&text);
    Ok((
        cut.host_labels().map(|label| string(py, label)).collect(),
        cut.path_segments().map(|part| string(py, part)).collect(),
        cut.query().map(|query| string(py, query)),
    ))
}

#[pyfunction]
fn spellings<'py>(key: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let spelled = uri::spellings(&text(key)?);
    Ok(spelled.iter().map(|each| string(key.py(), each)).collect())
}

fn policy(py: Python<'_>, name: &str) -> PyResult<Policy> {
    name.parse()
        .map_err(|error| raise_usage(py, format!("{name}: {error}")))
}

#[pyfunction]
fn policy_name(py: Python<'_>, name: &str) -> PyResult<String> {
    Ok(policy(py, name)?.to_string())
}

/// A Public Suffix List: the one that was current when unlost was built, or a newer one.
///
/// SuffixList(text=None, section="all"): `text` is a list as it is published, in bytes; `section` is "all", which
/// includes private suffixes such as blogspot.com, or "icann". Raises SuffixListError if the text is no such list.
///
/// registered_domain(uri) returns the registered domain of a URL, without port; the host itself if it is an IP address,
/// a single label or a public suffix.
///
/// >>> SuffixList().registered_domain("http://news.bbc.co.uk/")
/// 'bbc.co.uk'
#[pyclass(frozen, module = "unlost._core")]
pub struct SuffixList {
    pub suffixes: Suffixes,
}

fn section(py: Python<'_>, name: &str) -> PyResult<Section> {
    match name {
        "all" => Ok(Section::All),
        "icann" => Ok(Section::Icann),
        _ => Err(raise_usage(
            py,
            format!("{name}: unknown section: expected all or icann"),
        )),
    }
}

#[pymethods]
impl SuffixList {
    #[new]
    #[pyo3(signature = (text=None, section="all"))]
    fn new(py: Python<'_>, text: Option<&[u8]>, section: &str) -> PyResult<Self> {
        let section = self::section(py, section)?;
        let suffixes = match text {
            None => Suffixes::built_in(section),
            Some(text) => Suffixes::read(text, section)
                .map_err(|error| raise_suffix_list(py, error.to_string()))?,
        };
        Ok(Self { suffixes })
    }

    fn registered_domain<'py>(&self, uri: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let py = uri.py();
        let mut key = Vec::new();
        uri::key_of_uri(&text(uri)?, RuleSet::Wayback, &mut key)
            .map_err(|error| raise_uri(py, &error))?;
        let mut surt = Vec::new();
        Policy::Domain.write_key(&Segments::of(&key), &self.suffixes, &mut surt);
        let mut url = Vec::new();
        uri::unsurt(&surt, RuleSet::Wayback, &mut url).map_err(|error| raise_uri(py, &error))?;
        let host = &url[b"http://".len()..url.len() - 1];
        Ok(string(py, host))
    }
}

/// Makes the URI-Keys of URLs under several policies at once.
///
/// KeyPolicies(policies, rules="wayback", suffixes=None): names in any case; `suffixes` is the SuffixList for the D
/// policies. Raises UsageError for an unknown name.
///
/// keys(uri) returns one key for each policy, in order, of a URL or SURT; keys_many(uris) a list of them, with a
/// UriError for an invalid URL. Thread-safe.
///
/// >>> KeyPolicies(["H3P0", "DSub"]).keys("http://news.bbc.co.uk/a")
/// ['uk,co,bbc)/', 'uk,co,bbc)/1']
#[pyclass(frozen, module = "unlost._core")]
struct KeyPolicies {
    policies: Vec<Policy>,
    rules: RuleSet,
    suffixes: Py<SuffixList>,
}

impl KeyPolicies {
    fn write<'py>(
        &self,
        py: Python<'py>,
        uri: &[u8],
    ) -> PyResult<Result<Bound<'py, PyList>, UriError>> {
        let mut key = Vec::new();
        if let Err(error) = uri::key_of_uri(uri, self.rules, &mut key) {
            return Ok(Err(error));
        }
        let segments = Segments::of(&key);
        let suffixes = &self.suffixes.get().suffixes;
        let keys = PyList::empty(py);
        let mut out = Vec::new();
        for policy in &self.policies {
            out.clear();
            policy.write_key(&segments, suffixes, &mut out);
            keys.append(string(py, &out))?;
        }
        Ok(Ok(keys))
    }
}

#[pymethods]
impl KeyPolicies {
    #[new]
    #[pyo3(signature = (policies, rules="wayback", suffixes=None))]
    fn new(
        py: Python<'_>,
        policies: Vec<String>,
        rules: &str,
        suffixes: Option<Py<SuffixList>>,
    ) -> PyResult<Self> {
        let policies = policies.iter().map(|name| policy(py, name));
        Ok(Self {
            policies: policies.collect::<PyResult<_>>()?,
            rules: rule_set(py, rules)?,
            suffixes: match suffixes {
                Some(suffixes) => suffixes,
                None => Py::new(py, SuffixList::new(py, None, "all")?)?,
            },
        })
    }

    #[getter]
    fn policies(&self) -> Vec<String> {
        self.policies.iter().map(Policy::to_string).collect()
    }

    fn keys<'py>(&self, uri: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = uri.py();
        self.write(py, &text(uri)?)?
            .map_err(|error| raise_uri(py, &error))
    }

    fn keys_many<'py>(&self, uris: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = uris.py();
        let results = PyList::empty(py);
        for uri in uris.try_iter()? {
            match self.write(py, &text(&uri?)?)? {
                Ok(keys) => results.append(keys)?,
                Err(error) => results.append(uri_error(py, &error)?)?,
            }
        }
        Ok(results)
    }
}
