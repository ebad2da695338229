import type { Plugin } from 'vite';

const ID = '\0browser-webgpu';

/** In a browser the npm package `webgpu` (WebGPU for Node) stands for what the browser has itself. */
export const browserWebGpu: Plugin = {
  name: 'browser-webgpu',
  enforce: 'pre',
  resolveId: (source) => (source === 'webgpu' ? ID : null),
  load: (id) => (id === ID ? 'export const create = () => navigator.gpu;' : null),
};
