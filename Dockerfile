# Nightjar in one image: slim, without root, with a health check. The state lives in /var/lib/nightjar.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.txt pyproject.toml README.md ./
RUN python -m venv /opt/nightjar \
    && /opt/nightjar/bin/pip install --no-cache-dir --disable-pip-version-check -r requirements.txt "setuptools>=77"
COPY bot ./bot
COPY handlers ./handlers
RUN /opt/nightjar/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/nightjar --create-home nightjar
COPY --from=build /opt/nightjar /opt/nightjar
ENV PATH=/opt/nightjar/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DATABASE_URL=sqlite:////var/lib/nightjar/nightjar.db
# By number, so that an orchestrator can see that it is not root.
USER 10001
WORKDIR /var/lib/nightjar
VOLUME /var/lib/nightjar
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
ENTRYPOINT ["nightjar"]
CMD ["serve", "--config", "/etc/nightjar/app.yaml", "--host", "0.0.0.0", "--port", "8080"]
