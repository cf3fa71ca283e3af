# Nightjar in one image: slim, without root, with a health check. The state lives in /var/lib/nightjar.
# Pinned to a full version. A tag can still be moved, a digest cannot: look it up with
# `docker buildx imagetools inspect python:3.13.12-slim-bookworm` and append it as @sha256:... to both lines.
FROM python:3.13.12-slim-bookworm AS build
WORKDIR /src
COPY requirements.txt requirements-build.txt ./
# The environment that is kept has no pip: that of the other one installs into it.
RUN python -m venv --without-pip /opt/nightjar \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-build.txt \
    && /opt/build/bin/pip --python /opt/nightjar/bin/python install --no-cache-dir --disable-pip-version-check \
        --require-hashes -r requirements.txt
COPY pyproject.toml setup.py README.md LICENSE ./
COPY bot ./bot
COPY handlers ./handlers
COPY lab ./lab
# A wheel from an sdist requires the version of the kit, and not a folder that the image does not have.
RUN /opt/build/bin/python -c "import setuptools.build_meta; setuptools.build_meta.build_sdist('/sdists')" \
    && /opt/build/bin/pip wheel --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation \
        --wheel-dir /wheels ./lab /sdists/*.tar.gz \
    && /opt/build/bin/pip --python /opt/nightjar/bin/python install --no-cache-dir --disable-pip-version-check --no-deps \
        --no-index /wheels/*.whl

FROM python:3.13.12-slim-bookworm
# The workflow of releases adds version, revision and address.
LABEL org.opencontainers.image.title="Nightjar" \
    org.opencontainers.image.description="A GitHub App for projects that are tested on hardware most contributors lack" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.vendor="The Nightjar authors"
# Nothing in the image installs anything.
RUN python -m pip uninstall --yes --quiet --root-user-action=ignore setuptools wheel pip \
    && rm -rf "$(python -c 'import ensurepip, pathlib; print(pathlib.Path(ensurepip.__file__).parent)')"
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
