// For each line of input, keys are derived and text is compressed in the threads of the pool.

const crypto = require('crypto');
const zlib = require('zlib');
const readline = require('readline');

const size = Number(process.argv[2]);
const text = Buffer.from(Array.from({ length: 20000 }, (_, i) => String(i * 7919)).join(' '));

function derive() {
  return new Promise((resolve, reject) => {
    crypto.pbkdf2('secret', 'salt', size, 32, 'sha256', (error) => (error ? reject(error) : resolve()));
  });
}

function compress() {
  return new Promise((resolve, reject) => {
    zlib.deflate(text, { level: 1 }, (error) => (error ? reject(error) : resolve()));
  });
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === 'work') {
      const work = [];
      for (let i = 0; i < 8; i++) {
        work.push(derive(), compress());
      }
      await Promise.all(work);
    }
    process.stdout.write('done\n');
  }
}

main();
