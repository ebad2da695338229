import { type HybridModel, readModel } from '@bufferwise/hybrid-engine';

/**
 * Fetches the demo model from the page's own address.
 *
 * @param onProgress hears the share of the bytes that have come, 0 to 1
 * @throws {Error} when a file cannot be had; {ModelError} on files that fit no model
 */
export async function loadModel(base: string, onProgress: (share: number) => void): Promise<HybridModel> {
  const fetchSmall = async (name: string) => new Uint8Array(await (await fetchFile(base, name)).arrayBuffer());
  const [config, tokenizer, weights] = await Promise.all([
    fetchSmall('config.json'),
    fetchSmall('tokenizer.json'),
    fetchLarge(await fetchFile(base, 'model.safetensors'), onProgress),
  ]);
  return readModel({ config, tokenizer, weights });
}

async function fetchFile(base: string, name: string): Promise<Response> {
  const response = await fetch(new URL(`model/${name}`, base));
  if (!response.ok) throw new Error(`The model's file ${name} cannot be had: the server answers ${response.status}.`);
  return response;
}

async function fetchLarge(response: Response, onProgress: (share: number) => void): Promise<Uint8Array> {
  const expected = Number(response.headers.get('content-length')) || 0;
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    parts.push(read.value);
    length += read.value.length;
    if (expected > 0) onProgress(Math.min(1, length / expected));
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
