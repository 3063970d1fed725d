import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const SERVER = process.env.HANDRAIL_SERVER ?? "http://127.0.0.1:7420";

// The server sends a strict Content-Security-Policy: only files of its own, no inline script or style. So nothing is
// inlined here, and there is no polyfill of modulepreload, which would be a script of its own.
export default defineConfig({
  plugins: [react()],
  base: "/",
  build: {
    outDir: "../src/handrail/server/console",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
    // The licenses of what is in the bundle, for the wheel.
    license: { fileName: "licenses.md" },
  },
  server: {
    proxy: {
      "/api": { target: SERVER, changeOrigin: true },
      "/ws": { target: SERVER, ws: true, changeOrigin: true },
    },
  },
  test: { include: ["tests/**/*.test.ts"], environment: "node" },
});
