FROM node:22.23.3-bookworm-slim
WORKDIR /opt/plugin-host
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev
COPY . .
RUN useradd --system --create-home plugin-host && mkdir /data && chown plugin-host /data
USER plugin-host
ENV BOT_DATA_DIR=/data BOT_HTTP_HOST=0.0.0.0
EXPOSE 8080
VOLUME /data
CMD ["node", "src/main.ts", "serve"]
