# replctl with its own Java, as a user without rights: `replctl sync --watch` with metrics.
#   docker build --tag replctl .
#   docker run --volume replctl:/var/lib/replctl --publish 9187:9187 replctl
# docs/guides/scheduling.md says how to make the cluster, and how to run it elsewhere.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/replctl && /opt/replctl/bin/pip install --no-cache-dir '.[java]'
# Delta's jars, so that containers need no network.  Containers write nothing into this directory
RUN XDG_CACHE_HOME=/opt/replctl/cache /opt/replctl/bin/replctl spark prepare --no-archive --s3

FROM python:3.12-slim-bookworm
COPY --from=build /opt/replctl /opt/replctl
RUN useradd --uid 10001 --user-group --home-dir /var/lib/replctl --create-home replctl
ENV PATH=/opt/replctl/bin:$PATH XDG_CACHE_HOME=/opt/replctl/cache REPLCTL_HOME=/var/lib/replctl/cluster
USER 10001
VOLUME /var/lib/replctl
EXPOSE 9187
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:9187/metrics', timeout=10)"]
ENTRYPOINT ["replctl"]
CMD ["sync", "--watch", "--metrics-port", "9187", "--metrics-address", "0.0.0.0"]
