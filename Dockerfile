# Makes a release and runs it: no compiler, no test tools, an ordinary user, one volume.
FROM node:22.23.3-bookworm AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY admin/package.json admin/
RUN npm ci
COPY . .
# With the embedded PostgreSQL and SpiceDB: docker build --build-arg EMBEDDED=--embedded .
ARG EMBEDDED=
RUN npm run release:tree -- /release $EMBEDDED

FROM debian:bookworm-slim
RUN groupadd --system --gid 10001 plugin-host \
  && useradd --system --uid 10001 --gid plugin-host --home-dir /data --no-create-home plugin-host \
  && mkdir /data && chown plugin-host:plugin-host /data
COPY --from=build /release /opt/plugin-host
USER 10001:10001
ENV BOT_DATA_DIR=/data BOT_HTTP_HOST=0.0.0.0 PATH=/opt/plugin-host/bin:/usr/bin:/bin
EXPOSE 8080
VOLUME /data
# The root file system may be read-only: everything is written below /data, /tmp and /dev/shm.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["plugin-host", "ready"]
ENTRYPOINT ["plugin-host"]
CMD ["serve"]
