// SPDX-License-Identifier: GPL-2.0
/*
 * An importer of dma-bufs in software, for tests: /dev/kvt_testbuf.
 *
 * An open file imports one buffer: it attaches a device and maps the buffer for it, as a
 * driver does, until the file is closed. pread(2) then gives what the device would see,
 * by way of the bus addresses it was given. With KVT_TESTBUF_WRITE the mapping is asked
 * for as if the device was to write.
 */
#include <linux/dma-buf.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/kvt_compat.h"

KVT_IMPORT_NS_DMA_BUF;

#define KVT_TESTBUF_READ	_IO('K', 1)	/* argument: file descriptor */
#define KVT_TESTBUF_WRITE	_IO('K', 2)
#define KVT_TESTBUF_BOTH	_IO('K', 3)

/**
 * struct testbuf - what one file has imported
 * @lock:  all of it
 * @buf:   NULL: nothing yet
 * @at:    attachment
 * @table: mapping
 * @dir:   of that
 */
struct testbuf {
	struct mutex lock;
	struct dma_buf *buf;
	struct dma_buf_attachment *at;
	struct sg_table *table;
	enum dma_data_direction dir;
};

static struct platform_device *testbuf_pdev;

static int testbuf_map(struct testbuf *t, int fd, enum dma_data_direction dir)
{
	struct dma_buf *buf = dma_buf_get(fd);
	struct dma_buf_attachment *at;
	struct sg_table *table;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	at = dma_buf_attach(buf, &testbuf_pdev->dev);
	if (IS_ERR(at)) {
		dma_buf_put(buf);
		return PTR_ERR(at);
	}
	table = dma_buf_map_attachment_unlocked(at, dir);
	if (IS_ERR(table)) {
		dma_buf_detach(buf, at);
		dma_buf_put(buf);
		return PTR_ERR(table);
	}
	t->buf = buf;
	t->at = at;
	t->table = table;
	t->dir = dir;
	return 0;
}

static long testbuf_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct testbuf *t = file->private_data;
	enum dma_data_direction dir;

	switch (cmd) {
	case KVT_TESTBUF_READ:
		dir = DMA_TO_DEVICE;
		break;
	case KVT_TESTBUF_WRITE:
		dir = DMA_FROM_DEVICE;
		break;
	case KVT_TESTBUF_BOTH:
		dir = DMA_BIDIRECTIONAL;
		break;
	default:
		return -ENOTTY;
	}
	guard(mutex)(&t->lock);
	if (t->buf)
		return -EBUSY;
	return testbuf_map(t, arg, dir);
}

/* The segment that holds byte *@at, which becomes relative to it. */
static struct scatterlist *testbuf_segment(struct testbuf *t, loff_t *at)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(t->table, sg, i) {
		if (*at < sg_dma_len(sg))
			return sg;
		*at -= sg_dma_len(sg);
	}
	return NULL;
}

static ssize_t testbuf_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct testbuf *t = file->private_data;
	struct scatterlist *sg;
	loff_t at = *pos;
	void *from;

	guard(mutex)(&t->lock);
	if (!t->buf)
		return -ENXIO;
	sg = testbuf_segment(t, &at);
	if (!sg)
		return 0;
	len = min_t(size_t, len, sg_dma_len(sg) - at);
	from = phys_to_virt(dma_to_phys(&testbuf_pdev->dev, sg_dma_address(sg) + at));
	if (copy_to_user(buf, from, len))
		return -EFAULT;
	*pos += len;
	return len;
}

static int testbuf_open(struct inode *inode, struct file *file)
{
	struct testbuf *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	mutex_init(&t->lock);
	file->private_data = t;
	return 0;
}

static int testbuf_release(struct inode *inode, struct file *file)
{
	struct testbuf *t = file->private_data;

	if (t->buf) {
		dma_buf_unmap_attachment_unlocked(t->at, t->table, t->dir);
		dma_buf_detach(t->buf, t->at);
		dma_buf_put(t->buf);
	}
	kfree(t);
	return 0;
}

static const struct file_operations testbuf_fops = {
	.owner = THIS_MODULE,
	.open = testbuf_open,
	.release = testbuf_release,
	.read = testbuf_read,
	.unlocked_ioctl = testbuf_ioctl,
};

static struct miscdevice testbuf_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kvt_testbuf",
	.fops = &testbuf_fops,
};

static int __init testbuf_init(void)
{
	int err;

	testbuf_pdev = platform_device_register_simple("kvt_testbuf", PLATFORM_DEVID_NONE,
						       NULL, 0);
	if (IS_ERR(testbuf_pdev))
		return PTR_ERR(testbuf_pdev);
	err = dma_coerce_mask_and_coherent(&testbuf_pdev->dev, DMA_BIT_MASK(64)) ?:
	      misc_register(&testbuf_misc);
	if (err)
		platform_device_unregister(testbuf_pdev);
	return err;
}

static void __exit testbuf_exit(void)
{
	misc_deregister(&testbuf_misc);
	platform_device_unregister(testbuf_pdev);
}

module_init(testbuf_init);
module_exit(testbuf_exit);

MODULE_DESCRIPTION("Software importer of dma-bufs for tests of kvtier");
MODULE_LICENSE("GPL");
