//! The TLS configuration of all connections. The trusted certificates of the system are read once, when the first
//! server shows a certificate.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use rustls_platform_verifier::Verifier;

static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();

/// The configuration, which reads nothing of the system yet.
pub fn config() -> Arc<ClientConfig> {
    let config = CONFIG.get_or_init(|| {
        // Unless the process has a provider already.
        let _ = ring::default_provider().install_default();
        let mut config = ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(System::default()))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    });
    config.clone()
}

/// Trusts what the system trusts, which is read on first use.
#[derive(Debug, Default)]
struct System(OnceLock<Result<Verifier, Error>>);

impl System {
    fn verifier(&self) -> Result<&Verifier, Error> {
        self.0.get_or_init(verifier).as_ref().map_err(Clone::clone)
    }
}

/// Trusts what the system trusts; without certificates, as in an empty container, what Mozilla trusts. A file that the user
/// names must have some.
fn verifier() -> Result<Verifier, Error> {
    let is_named = |variable| std::env::var_os(variable).is_some();
    Verifier::new(provider()).or_else(|error| {
        if is_named("SSL_CERT_FILE") || is_named("SSL_CERT_DIR") {
            return Err(error);
        }
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned();
        Verifier::new_with_extra_roots(roots, provider())
    })
}

impl ServerCertVerifier for System {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()))
}
