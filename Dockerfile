# Nightjar in one image: slim, without root, with a health check. The state lives in /var/lib/nightjar.
# Pinned to a full version. A tag can still be moved, a digest cannot: look it up with
# `docker buildx imagetools inspect python:3.13.12-slim-bookworm` and append it as @sha256:... to both lines.
FROM python:3.13.12-slim-bookworm AS build
WORKDIR /src
COPY requirements.txt requirements-build.txt ./
RUN python -m venv /opt/nightjar \
    && /opt/nightjar/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.txt \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-build.txt
COPY pyproject.toml setup.py README.md ./
COPY bot ./bot
COPY handlers ./handlers
COPY lab ./lab
RUN /opt/build/bin/pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation \
        --wheel-dir /wheels ./lab . \
    && /opt/nightjar/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-index /wheels/*.whl

FROM python:3.13.12-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /var/lib/nightjar --create-home nightjar
COPY --from=build /opt/nightjar /opt/nightjar
ENV PATH=/opt/nightjar/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DATABASE_URL=sqlite:////var/lib/nightjar/nightjar.db \
    NIGHTJAR_CONFIG=/etc/nightjar/app.yaml
# By number, so that an orchestrator can see that it is not root.
USER 10001
WORKDIR /var/lib/nightjar
VOLUME /var/lib/nightjar
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
ENTRYPOINT ["nightjar"]
CMD ["serve", "--config", "/etc/nightjar/app.yaml", "--host", "0.0.0.0", "--port", "8080"]
