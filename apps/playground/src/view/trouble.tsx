/** Why there is nothing to see, and what helps. */
export function Trouble({ kind, text }: { kind: 'unsupported' | 'failed'; text: string }) {
  return (
    <main class="centre">
      <div class="card trouble">
        <h2>{kind === 'unsupported' ? 'This page needs WebGPU' : 'The engine has stopped'}</h2>
        <p role="alert">{text}</p>
        {kind === 'unsupported' ? <Remedies /> : <p>Reload the page to begin again.</p>}
        <p>
          <button type="button" class="button primary" onClick={() => location.reload()}>
            Try again
          </button>
        </p>
      </div>
    </main>
  );
}

function Remedies() {
  return (
    <>
      <p>The model runs on your own graphics device, and WebGPU is how a page reaches it. What helps, most likely first:</p>
      <ul>
        <li>a present version of Chrome, Edge, Firefox or Safari;</li>
        <li>a secure address: WebGPU is for https pages and for localhost;</li>
        <li>hardware acceleration, switched on in the browser's settings;</li>
        <li>
          on Linux, or without a graphics card: Chrome with <code>--enable-unsafe-webgpu --use-webgpu-adapter=swiftshader</code>,
          which computes on the processor.
        </li>
      </ul>
    </>
  );
}
