//! Debian's nginx-light.

use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};

use super::files;
use super::prepared::{Prepared, first_word, make_directory, write};
use crate::certificates;
use crate::error::Result;
use crate::file::{Host, HostName, Server};

pub(super) fn prepare(host: &Host, server: &Server, directory: &Path) -> Result<Prepared> {
    let own = directory.join("nginx");
    make_directory(&own)?;
    if server.tls {
        let (key, certificate) = (own.join("key.pem"), own.join("certificate.pem"));
        certificates::self_signed(&host.name.to_string(), &key, &certificate)?;
    }
    let config = own.join("nginx.conf");
    write(&config, &text(host, server, directory, &own))?;
    Ok(Prepared {
        words: vec![
            first_word("nginx")?,
            "-e".into(),
            "stderr".into(),
            "-c".into(),
            config.to_string_lossy().into_owned(),
        ],
        leftovers: ["upload.sock", "proxy.sock", "forwarded.sock"]
            .map(|socket| own.join(socket))
            .into(),
    })
}

/// The text of nginx.conf. Besides its port, the server listens at two Unix sockets: at `proxy.sock` it expects the PROXY
/// protocol, and at `forwarded.sock` the client's address in X-Forwarded-For. `/upload` goes to a second server over a
/// Unix socket, because nginx waits for the whole body only when it is a proxy. Then `$content_length` is the number of
/// bytes read, also for a chunked body.
fn text(host: &Host, server: &Server, directory: &Path, own: &Path) -> String {
    let name = &host.name;
    let port = server.port.number();
    let workers = server.workers;
    let (directory, own) = (directory.display(), own.display().to_string());
    let (ssl, certificate) = if server.tls {
        let pair =
            format!("ssl_certificate {own}/certificate.pem; ssl_certificate_key {own}/key.pem;");
        ("ssl http2", pair)
    } else {
        ("", String::new())
    };
    let files_limit = files_limit();
    let pages = pages(name, &own);
    let listen_ipv6 = if host.has_ipv6() {
        format!("listen [::]:{port} {ssl} reuseport backlog=4096 ipv6only=on;")
    } else {
        String::new()
    };
    format!(
        r#"daemon off;
user www-data;
worker_processes {workers};
worker_rlimit_nofile {files_limit};
pid {own}/nginx.pid;
error_log stderr error;
events {{
    worker_connections 65536;
}}
http {{
    client_body_temp_path {own}/body;
    proxy_temp_path {own}/proxy;
    fastcgi_temp_path {own}/fastcgi;
    uwsgi_temp_path {own}/uwsgi;
    scgi_temp_path {own}/scgi;

    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
    client_max_body_size 0;
    client_header_timeout 3600s;
    open_file_cache max=100 inactive=3600s;
    open_file_cache_valid 3600s;

    log_format lab '$remote_addr $remote_port "$request" $status $body_bytes_sent';
    access_log {directory}/access.log lab buffer=64k flush=1s;

    map $http_x_body_length $body_length {{
        "" 0;
        default $http_x_body_length;
    }}

    server {{
        listen {port} {ssl} reuseport backlog=4096;
        {certificate}
        {listen_ipv6}
        {pages}
    }}

    server {{
        listen unix:{own}/proxy.sock proxy_protocol;
        set_real_ip_from unix:;
        real_ip_header proxy_protocol;
        {pages}
    }}

    server {{
        listen unix:{own}/forwarded.sock;
        set_real_ip_from unix:;
        real_ip_header X-Forwarded-For;
        {pages}
    }}

    server {{
        listen unix:{own}/upload.sock;
        default_type text/plain;
        access_log off;
        return 200 "$body_length\n";
    }}
}}
"#
    )
}

/// The pages of this host, for each way to reach the server. `own` is the folder of its files.
fn pages(name: &HostName, own: &str) -> String {
    let files = files::directory();
    let files = files.display();
    format!(
        r#"root {files};
        add_header X-Served-By {name} always;

        location = /whoami {{
            default_type text/plain;
            return 200 "{name}\n";
        }}
        location = /health {{
            default_type text/plain;
            access_log off;
            return 200 "ok\n";
        }}
        location ~ ^/ds[0-9]+/(?<file>[0-9]+[bkm])$ {{
            try_files /$file =404;
        }}
        # PUT keeps a file; the folder is one that the workers may write to.
        location ~ ^/ds[0-9]+/kept/ {{
            root {own}/body;
            dav_methods PUT;
            create_full_put_path on;
        }}
        location ~ ^/ds[0-9]+/client$ {{
            default_type text/plain;
            return 200 "{name} $remote_addr $http_x_forwarded_for $http_x_forwarded_proto\n";
        }}
        location ~ ^/ds[0-9]+/ {{
            default_type text/plain;
            return 200 "{name} $request_uri\n";
        }}
        location = /upload {{
            proxy_pass http://unix:{own}/upload.sock;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header X-Body-Length $content_length;
        }}"#
    )
}

/// The limit of open files for nginx: this process's hard limit, because not every root may raise it.
fn files_limit() -> u64 {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) => hard.min(1 << 20),
        Err(_) => 1024, // POSIX's customary limit; getrlimit fails only for a bad pointer
    }
}
