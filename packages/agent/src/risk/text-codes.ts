/** The encodings that are used to hide text, undone. Undefined when the text is not of that encoding. */

export function decodeBase64(text: string): string | undefined {
  const plain = text.replace(/[\s=]/g, "").replaceAll("-", "+").replaceAll("_", "/");
  return /^[A-Za-z0-9+/]+$/.test(plain) ? Buffer.from(plain, "base64").toString("utf8") : undefined;
}

export function decodeHex(text: string): string | undefined {
  const plain = text.replace(/\s/g, "");
  return /^(?:[0-9a-fA-F]{2})+$/.test(plain) ? Buffer.from(plain, "hex").toString("utf8") : undefined;
}

export function rot13(text: string): string {
  return text.replace(/[A-Za-z]/g, (letter) => {
    const base = letter <= "Z" ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });
}

export function reverse(text: string): string {
  return [...text].reverse().join("");
}
